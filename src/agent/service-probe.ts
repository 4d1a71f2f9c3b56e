/**
 * Whether services are reached by way of the programs, found out by reaching one. The one every cluster has is the API server's. The node's
 * own connections are translated when they are made, which the kernel's list of sockets shows; those of pods packet by packet, which the
 * programs' flows show. An answer that came by another way, through a proxy that is still there, proves nothing.
 */
import { once } from "node:events";
import { connect, Socket } from "node:net";
import type { DataplaneModel, ServicePort } from "../calc/model.ts";
import { evaluate } from "../calc/policy/evaluate.ts";
import { addressBytes } from "../dataplane/ebpf/net-bytes.ts";
import { mapDirectory } from "../dataplane/ebpf/programs/programs.ts";
import { CONNTRACK_FLAG, conntrackEntryLayout, fiveTupleLayout } from "../gen/bpf/layout.gen.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { PodRecord } from "./pods/pod-records.ts";

export type ServiceProbeResult =
  | { is: "proven"; by: string[] }
  | { is: "failed"; why: string }
  | { is: "nothingToAsk" };

interface ProofPlace {
  kernel: Kernel;
  pinDirectory: string;
}

export interface ServiceProbeOptions extends ProofPlace {
  model(): DataplaneModel;
  pods(): readonly PodRecord[];
}

const TCP = 6;
const TIMEOUT_MS = 2_000;
/** One pod that reaches it is enough, and some may be about to end. */
const PODS_PROBED = 3;

export async function probeServices({
  kernel,
  pinDirectory,
  model,
  pods,
}: ServiceProbeOptions): Promise<ServiceProbeResult> {
  const service = apiService(model());
  if (!service) return { is: "nothingToAsk" };
  try {
    const by = [await proveFromNode({ kernel, pinDirectory }, service)];
    const able = pods()
      .filter((pod) => policyAllows(model(), pod, service))
      .slice(0, PODS_PROBED);
    const failures: string[] = [];
    for (const pod of able) {
      try {
        by.push(await proveFromPod({ kernel, pinDirectory }, pod, service));
        break;
      } catch (error) {
        failures.push(`${pod.namespace}/${pod.pod}: ${reason(error)}`);
      }
    }
    if (able.length > 0 && by.length === 1) return { is: "failed", why: `from pods: ${failures.join("; ")}` };
    return { is: "proven", by };
  } catch (error) {
    return { is: "failed", why: `from the node: ${reason(error)}` };
  }
}

function apiService({ services }: DataplaneModel): ServicePort | undefined {
  return [...services.values()].find(
    ({ id, protocol, clusterAddress }) =>
      id.startsWith("default/kubernetes:") && protocol === TCP && clusterAddress !== null,
  );
}

/** Where nothing is at the node's sockets, what leaves them is translated on its way out. */
async function proveFromNode({ kernel, pinDirectory }: ProofPlace, service: ServicePort): Promise<string> {
  const { clusterAddress, port, clusterBackends } = service;
  const socket = connect({ host: clusterAddress!, port });
  const sockets = kernel.sockets();
  try {
    await connected(socket);
    const { localPort, localAddress } = socket;
    const real = sockets.connected("tcp", service.family).find(({ sourcePort }) => sourcePort === localPort);
    const isBackend = clusterBackends.some(
      (one) => one.address === real?.destination && one.port === real.destinationPort,
    );
    if (isBackend) return "the node, at its sockets";
    if (isTranslated({ kernel, pinDirectory }, service, localAddress!, localPort!)) return "the node, by packet";
    throw notByPrograms(service);
  } finally {
    sockets.close();
    socket.destroy();
  }
}

async function proveFromPod(place: ProofPlace, pod: PodRecord, service: ServicePort): Promise<string> {
  const { kernel } = place;
  const source = addressOf(pod, service)!;
  const netns = kernel.netns.openPath(pod.netns);
  const fd = kernel.netns.bind(netns, { kind: "stream", address: source, port: 0 });
  netns.close();
  const socket = new Socket({ fd });
  try {
    socket.connect({ host: service.clusterAddress!, port: service.port });
    await connected(socket);
    if (!isTranslated(place, service, source, socket.localPort!)) throw notByPrograms(service);
    return `pod ${pod.namespace}/${pod.pod}`;
  } finally {
    socket.destroy();
  }
}

/** The programs have the connection among their flows, as one they translate. */
function isTranslated(
  { kernel, pinDirectory }: ProofPlace,
  service: ServicePort,
  source: string,
  port: number,
): boolean {
  const ports = { sport: port, dport: service.port, protocol: TCP };
  const key = fiveTupleLayout.write({
    src: addressBytes(source),
    dst: addressBytes(service.clusterAddress!),
    ...ports,
  });
  const flows = kernel.bpf.openMap(`${mapDirectory(pinDirectory)}/flows`);
  const flow = flows.lookup(key);
  flows.close();
  return flow !== undefined && (flow.readUInt8(conntrackEntryLayout.at.flags) & CONNTRACK_FLAG.CT_NAT) !== 0;
}

function notByPrograms({ clusterAddress, port }: ServicePort): Error {
  return new Error(`${clusterAddress}:${port} answers, but not through the eBPF programs`);
}

/** Policy may forbid a pod to ask: that says nothing of services. */
function policyAllows(model: DataplaneModel, pod: PodRecord, service: ServicePort): boolean {
  const source = addressOf(pod, service);
  const [backend] = service.clusterBackends;
  const id = `${pod.namespace}/${pod.pod}`;
  if (source === undefined || !backend || !model.endpoints.has(id) || pod.state !== "ready") return false;
  const packet = {
    ...{ ipVersion: service.family, protocol: TCP, source, destination: backend.address },
    ...{ sourcePort: 40_000, destinationPort: backend.port },
    ...{ originalDestination: service.clusterAddress!, originalDestinationPort: service.port },
  };
  const to = { at: "interface", endpoint: undefined } as const;
  return evaluate(model, packet, { from: { at: "workload", id }, to }).action === "allow";
}

function addressOf({ addresses }: PodRecord, { family }: ServicePort): string | undefined {
  return addresses.map((text) => text.split("/")[0] as string).find((text) => text.includes(":") === (family === 6));
}

async function connected(socket: Socket): Promise<void> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  await once(socket, "connect", { signal: late });
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === "AbortError" ? "no answer in time" : error.message;
}
