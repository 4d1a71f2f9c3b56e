import type { KubeObject } from "../../../api/object.ts";
import type { Client } from "../../../cluster/client.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import { PODS } from "../../../cluster/kinds.ts";
import type { EventRecorder } from "../event-recorder.ts";
import { controllerReference } from "../garbage/owner-references.ts";
import type { Pod, PodTemplate } from "../workload-types.ts";
import type { Expectations } from "./expectations.ts";
import type { AdoptedPods } from "./pod-adoption.ts";

/** The writes every workload controller makes to pods, with the events a cluster's user knows them by. */
export interface PodControl {
  /** Creates them, a few at first and more as it goes well; the first failure ends it and is thrown. */
  create(owner: KubeObject, pods: readonly Pod[]): Promise<void>;
  remove(owner: KubeObject, pods: readonly Pod[]): Promise<void>;
  claim(owner: KubeObject, claims: Pick<AdoptedPods, "adopt" | "release">): Promise<void>;
}

export function createPodControl(client: Client, recorder: EventRecorder, expectations: Expectations): PodControl {
  const createOne = async (owner: KubeObject, pod: Pod) => {
    const uid = owner.metadata.uid ?? "";
    try {
      const created = await client.create(PODS, pod);
      recorder.record(owner, "Normal", "SuccessfulCreate", `Created pod: ${created.metadata.name}`);
    } catch (error) {
      expectations.creationFailed(uid);
      recorder.record(owner, "Warning", "FailedCreate", `Error creating: ${messageOf(error)}`);
      throw error;
    }
  };
  const removeOne = async (owner: KubeObject, pod: Pod) => {
    const uid = owner.metadata.uid ?? "";
    expectations.expectDeletion(uid, pod.metadata.uid ?? "");
    try {
      await client.delete(PODS, pod.metadata, { preconditions: { uid: pod.metadata.uid } });
      recorder.record(owner, "Normal", "SuccessfulDelete", `Deleted pod: ${pod.metadata.name}`);
    } catch (error) {
      expectations.deletionFailed(uid, pod.metadata.uid ?? "");
      if (isNotFound(error)) return;
      recorder.record(owner, "Warning", "FailedDelete", `Error deleting: ${messageOf(error)}`);
      throw error;
    }
  };

  return {
    async create(owner, pods) {
      let batch = 1;
      for (let done = 0; done < pods.length; batch *= 2) {
        const now = pods.slice(done, done + batch);
        expectations.expectCreations(owner.metadata.uid ?? "", now.length);
        await allOrFirstFailure(now.map((pod) => createOne(owner, pod)));
        done += now.length;
      }
    },
    remove: (owner, pods) => allOrFirstFailure(pods.map((pod) => removeOne(owner, pod))),
    claim: (owner, { adopt, release }) =>
      allOrFirstFailure([
        ...adopt.map((pod) => setOwners(client, pod, [...owners(pod), controllerReference(owner)])),
        ...release.map((pod) => {
          const others = owners(pod).filter((reference) => reference.uid !== owner.metadata.uid);
          return setOwners(client, pod, others);
        }),
      ]),
  };
}

export function podFromTemplate(owner: KubeObject, template: PodTemplate): Pod {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "",
      generateName: `${owner.metadata.name.slice(0, 57)}-`,
      namespace: owner.metadata.namespace,
      labels,
      annotations,
      finalizers,
      ownerReferences: [controllerReference(owner)],
    },
    spec: template.spec,
  };
}

function owners(pod: Pod) {
  return pod.metadata.ownerReferences ?? [];
}

async function setOwners(client: Client, pod: Pod, ownerReferences: ReturnType<typeof owners>): Promise<void> {
  const { uid, resourceVersion } = pod.metadata;
  const patch = { metadata: { uid, resourceVersion, ownerReferences } };
  await client.patch(PODS, pod.metadata, { type: "merge", patch }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

async function allOrFirstFailure(writes: Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(writes);
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
