import type { KubeObject } from "../../api/object.ts";
import { isAlreadyExists } from "../../cluster/failures.ts";
import { NAMESPACES, PODS, SERVICES } from "../../cluster/kinds.ts";
import type { Work } from "../action.ts";
import { awaitObjects } from "../actions/objects/await-objects.ts";
import { removeAndAwait } from "../actions/objects/remove.ts";
import { undefinedIfNotFound } from "../actions/objects/target.ts";
import {
  CANARY_ID,
  CANARY_NAMESPACE,
  clientNames,
  clientObjects,
  namespaceObject,
  type ServerAddresses,
  serverName,
  serverObjects,
} from "./canary-objects.ts";
import type { CanaryInputs } from "./canary-plan.ts";
import { errors } from "./errors.ts";
import { canaryNamespace } from "./read-canary.ts";

/** Makes everything of the canary that is not there yet; what another start left goes first. */
export async function runCanary(inputs: CanaryInputs, id: string, work: Work): Promise<void> {
  await makeNamespace(id, work);
  for (const object of serverObjects(inputs)) await create(object, work);
  work.waitingFor("the servers of the canary to run");
  const servers = await serversUp(inputs.nodes.length, work);
  for (const object of clientObjects(inputs, servers)) await create(object, work);
  await podsUp(clientNames(inputs.nodes.length), work);
}

export async function removeCanary(work: Work): Promise<void> {
  if ((await canaryNamespace(work)) === undefined) return;
  await removeAndAwait({ apiVersion: "v1", kind: "Namespace", name: CANARY_NAMESPACE }, work);
}

async function makeNamespace(id: string, work: Work): Promise<void> {
  const { client, signal } = work;
  const ours = await canaryNamespace(work);
  if (ours && (ours.metadata.labels?.[CANARY_ID] !== id || ours.metadata.deletionTimestamp)) await removeCanary(work);
  else if (ours) return;
  await client.create(NAMESPACES, namespaceObject(id), { signal }).catch((error: unknown) => {
    throw isAlreadyExists(error) ? errors.CANARY_NAMESPACE_TAKEN(CANARY_NAMESPACE).from(error) : error;
  });
}

async function create(object: KubeObject, { client, signal }: Work): Promise<void> {
  await client.create(await client.resourceFor(object), object, { signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}

interface SeenPod extends KubeObject {
  status?: { phase?: string; podIP?: string; reason?: string; message?: string };
}

async function podsUp(names: readonly string[], work: Work): Promise<SeenPod[]> {
  let up: SeenPod[] = [];
  await awaitObjects(work, [{ kind: PODS, namespace: CANARY_NAMESPACE }], ([found = []]) => {
    up = names.flatMap((name) => found.find(({ metadata }) => metadata.name === name) ?? []) as SeenPod[];
    const ended = up.find(({ status }) => status?.phase === "Failed" || status?.phase === "Succeeded");
    if (ended) {
      const { reason = "", message = "it ended" } = ended.status ?? {};
      return { hopeless: errors.CANARY_SILENT(ended.metadata.name, `${message} ${reason}`.trim()) };
    }
    const late = up.filter(({ status }) => status?.phase !== "Running" || !status.podIP);
    if (up.length === names.length && late.length === 0) return "done";
    return { waitingFor: `${late.length || "all"} pods of the canary to run` };
  });
  return up;
}

async function serversUp(count: number, work: Work): Promise<ServerAddresses[]> {
  const names = Array.from({ length: count }, (_, at) => serverName(at));
  const pods = await podsUp(names, work);
  return await Promise.all(names.map((name, at) => addressesOf(name, pods[at] as SeenPod, work)));
}

interface SeenService extends KubeObject {
  spec?: { clusterIP?: string; ports?: { name?: string; nodePort?: number }[] };
}

async function addressesOf(name: string, pod: SeenPod, { client, signal }: Work): Promise<ServerAddresses> {
  const ref = { namespace: CANARY_NAMESPACE, name };
  const service = await client.get<SeenService>(SERVICES, ref, { signal }).catch(undefinedIfNotFound);
  const door = (protocol: string) => service?.spec?.ports?.find((port) => port.name === protocol)?.nodePort ?? 0;
  return {
    podIP: pod.status?.podIP ?? "",
    clusterIP: service?.spec?.clusterIP ?? "",
    tcpNodePort: door("tcp"),
    udpNodePort: door("udp"),
  };
}
