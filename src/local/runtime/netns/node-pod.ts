import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Log } from "../../../kit/log.ts";
import type { Container, Pod } from "../../controllers/workload-types.ts";
import type { ContainerEvent, ContainerRun, ExecCommand, ExecSession, LogOptions, PodHandle } from "../node-runtime.ts";
import type { ProbeReach } from "../probes.ts";
import { unpublishVolumes } from "./csi-volumes.ts";
import { dial } from "./dial.ts";
import type { PlatformImage } from "./images.ts";
import type { Machine } from "./machine.ts";
import { objectVolumes, refreshVolumes, renewTokens, type VolumeSources } from "./pod-volumes.ts";

/** What a pod is given beyond what its node has. */
export interface PodContext extends VolumeSources {
  kernel: Kernel;
  clock: Clock;
  log: Log;
  /** Lines of `/etc/hosts`. */
  hosts: string;
  /** Versions of other releases whose own programs are here. */
  releases: ReadonlySet<string>;
  /** The address of the `kubernetes` service. */
  apiService: { host: string; port: number };
  /** Serves the cluster's services on a node as the pod is configured; what it returns stops that. */
  serveServices(machine: Machine, pod: Pod): () => Promise<void>;
}

/** A pod on a real node, whatever runs its containers. */
export interface NodePod extends PodHandle {
  readonly pod: Pod;
  readonly machine: Machine;
  /** Its own, or its node's. */
  readonly netns: Netns;
  run(container: Container, report: Report): Promise<ContainerRun>;
  logs(container: string, options: LogOptions): AsyncIterable<string>;
  exec(container: string, command: ExecCommand): Promise<ExecSession>;
  /** As `kill -9` of every container. False if none runs. */
  kill(): boolean;
  stop(graceSeconds: number): Promise<void>;
}

/** What makes pods of one kind. */
export interface PodMaker<P extends NodePod> {
  /** Makes a new node able to run pods; what it returns ends that, before the node goes. */
  prepare(machine: Machine): Promise<() => Promise<void>>;
  /** `stays`: whether the node is there to stay, and what a pod was given must be given back. */
  start(pod: Pod, machine: Machine, stays: () => boolean): Promise<P>;
}

export type Report = (event: ContainerEvent) => void;

const TOKEN_RENEWAL_MS = 40 * 60_000;
/** A kubelet looks at the ConfigMaps and Secrets that a pod mounts about once a minute. */
const VOLUME_REFRESH_MS = 45_000;

/** What is done for a pod by its node and not by its containers, until the pod is over. */
export class PodDuties {
  readonly over = new AbortController();
  readonly #pod: Pod;
  readonly #machine: Machine;
  readonly #context: PodContext;
  readonly #stops: (() => Promise<void>)[] = [];

  constructor(pod: Pod, machine: Machine, context: PodContext) {
    this.#pod = pod;
    this.#machine = machine;
    this.#context = context;
    this.#again(TOKEN_RENEWAL_MS, "token", () => renewTokens(machine, pod, context));
    if (objectVolumes(pod).length > 0)
      this.#again(VOLUME_REFRESH_MS, "volumes", () => refreshVolumes(machine, pod, context));
  }

  /** Takes the place of a container of the platform. */
  standIn(image: PlatformImage, container: Container, write: (line: string) => void, report: Report): void {
    if (image.is === "service-proxy") {
      write(`serving the cluster's services on ${this.#machine.spec.name}`);
      this.#stops.push(this.#context.serveServices(this.#machine, this.#pod));
    } else write(`${container.image} is not on this machine: it is reported as running, but no process runs`);
    report({ is: "ready" });
  }

  async end(): Promise<void> {
    for (const stop of this.#stops) await stop();
    await unpublishVolumes(this.#machine, this.#pod);
  }

  #again(afterMs: number, what: string, work: () => Promise<void>): void {
    const { clock, log } = this.#context;
    const cancel = clock.setTimeout(() => {
      this.over.signal.removeEventListener("abort", cancel);
      void work()
        .catch((error: unknown) => log.warn({ error, pod: this.#pod.metadata.name }, `${what} not renewed`))
        .then(() => this.#again(afterMs, what, work));
    }, afterMs);
    if (this.over.signal.aborted) cancel();
    else this.over.signal.addEventListener("abort", cancel, { once: true });
  }
}

/** Probes are the kubelet's: they come from the node. */
export function reachFrom(kernel: Kernel, machine: Machine, podIP: string): ProbeReach["addressOf"] {
  return (port, asked) => {
    const host = asked === "localhost" ? "127.0.0.1" : (asked ?? podIP);
    return { host, port, connect: () => dial(kernel, machine.netns, { host, port }) };
  };
}

/** `/etc/hosts` of a pod, as a kubelet writes it. */
export function podHosts({ hosts }: PodContext, pod: Pod, machine: Machine, podIPs: readonly string[]): string {
  return `${hosts}${podIPs.map((ip) => `${ip} ${podHostname(pod, machine)}\n`).join("")}`;
}

export function podHostname(pod: Pod, { spec }: Machine): string {
  return (pod.spec.hostNetwork ? spec.name : (pod.spec.hostname ?? pod.metadata.name)).slice(0, 63);
}
