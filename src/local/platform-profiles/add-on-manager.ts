import { parseAllDocuments, stringify } from "yaml";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { runController, type Watch } from "../../cluster/controller.ts";
import { createInformer, type Informer } from "../../cluster/informer.ts";
import { CONFIG_MAPS, DAEMON_SETS } from "../../cluster/kinds.ts";
import { keyedQueue } from "../../kit/keyed-queue.ts";
import { createEventRecorder } from "../controllers/event-recorder.ts";
import type { Behaviour, BehaviourContext } from "../platform-profile.ts";
import { putObject } from "./put-object.ts";
import { KUBE_SYSTEM } from "./system-namespaces.ts";

const ADD_ON = vendorNames.serviceProxy.daemonSet;
const MANIFESTS = "add-on-manager";
/** Long enough that a user sees their change work, short enough that they do not rely on it. */
const REACTION_MS = 1000;
const LEAVING_MS = 200;
const RESYNC_MS = 30_000;

/** The label of everything the manager keeps. */
export const RECONCILED = { "addonmanager.kubernetes.io/mode": "Reconcile" } as const;

/** The manager's own copy of an add-on; on a real service it is on the control plane, out of the user's sight. */
export function addOnManifests(objects: readonly KubeObject[]): KubeObject {
  const documents = objects.map((object) => stringify(object)).join("---\n");
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: MANIFESTS, namespace: KUBE_SYSTEM },
    data: { [`${ADD_ON}.yaml`]: documents },
  };
}

/** Puts the service proxy back as its manifest says, whatever was done to it, about a second after it was done. */
export const addOnManager: Behaviour = {
  name: "add-on-manager",
  start(context) {
    const { client, clock, log } = context;
    const follow = (kind: typeof CONFIG_MAPS, name: string) =>
      createInformer<KubeObject>(client, kind, {
        namespace: KUBE_SYSTEM,
        fieldSelector: `metadata.name=${name}`,
        clock,
      });
    const manifests = follow(CONFIG_MAPS, MANIFESTS);
    const proxy = follow(DAEMON_SETS, ADD_ON);
    const queue = keyedQueue({ clock });
    const later = (informer: Informer<KubeObject>): Watch => ({
      synced: informer.synced,
      start: () => informer.onChange(() => queue.addAfter(ADD_ON, REACTION_MS)),
    });
    const controller = runController({
      name: addOnManager.name,
      watches: [later(manifests), later(proxy)],
      reconcile: async () => {
        const wanted = manifestObjects(manifests.get(`${KUBE_SYSTEM}/${MANIFESTS}`));
        return { requeueAfterMs: await restore(wanted, context, recorder) };
      },
      queue,
      log,
    });
    const recorder = createEventRecorder(client, { component: "addon-manager" }, clock);
    return {
      async stop() {
        await controller.stop();
        await Promise.all([manifests.stop(), proxy.stop()]);
        await recorder.flush();
      },
    };
  },
};

function manifestObjects(configMap: KubeObject | undefined): KubeObject[] {
  const text = (configMap?.["data"] as Record<string, string> | undefined)?.[`${ADD_ON}.yaml`] ?? "";
  return parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
}

/** Answers in how many milliseconds to look again. */
async function restore(
  wanted: readonly KubeObject[],
  { client, log }: BehaviourContext,
  recorder: ReturnType<typeof createEventRecorder>,
): Promise<number> {
  let lookAgain = RESYNC_MS;
  for (const manifest of wanted) {
    const result = await putObject(client, manifest);
    if (result.did === "leaving") lookAgain = LEAVING_MS;
    if (result.did === "created" || result.did === "changed") {
      const { kind, metadata } = manifest;
      log.info({ kind, name: metadata.name, did: result.did }, "put an add-on's object back");
      const done = result.did === "created" ? "made it again" : "undid a change";
      recorder.record(result.object, "Normal", "AddOnReconciled", `The add-on manager ${done}: its manifest decides.`);
    }
  }
  return lookAgain;
}
