import type { Duplex, Readable, Writable } from "node:stream";
import type { Taint } from "../../api/taints.ts";
import type { Container, Labels, Pod } from "../controllers/workload-types.ts";

/**
 * What runs pods. The kubelet knows the life of a pod (init containers in order, restarts, status); a runtime knows how to give it
 * a network and how to run one container of it. `paper`, the simulated one, only reports that it did; `netns` uses network namespaces and processes,
 * and `containerd` a container runtime on each node.
 */
export interface NodeRuntime {
  readonly kind: "paper" | RealRuntime;
  addNode(spec: NodeSpec): Promise<void>;
  removeNode(name: string): Promise<void>;
  /** Whether the node has a CNI configuration. Without one its container runtime connects no pod, and its kubelet is not ready. */
  networkReady(node: string): boolean;
  /** Calls the listener with the name of a node whose network became ready, or is no longer. */
  onNetworkChange(listener: (node: string) => void): void;
  /** Prepares the pod's sandbox. Starting one that was started before, by a process that is gone, takes it over. */
  startPod(pod: Pod, node: string): Promise<PodHandle>;
  /** Ends whatever of the pod runs, within the grace period, and gives its addresses back. A pod that is not there is no error. */
  stopPod(uid: string, graceSeconds: number): Promise<void>;
  /** Lines as they came, each behind its time (RFC 3339) and a space. */
  logs(uid: string, container: string, options: LogOptions): AsyncIterable<string>;
  /** Runs a command in the container, with the same namespaces and files. */
  exec(uid: string, container: string, command: ExecCommand): Promise<ExecSession>;
  /** A connection to a port of the pod, from inside it. */
  connect(uid: string, port: number): Promise<Duplex>;
  close(): Promise<void>;
}

/** How pods run on nodes that are real. */
export type RealRuntime = "netns" | "containerd";

/** A node as the cluster's maker describes it: where it is, and what it says of itself. */
export interface NodeSpec {
  name: string;
  /** The node's own addresses, IPv4 first. */
  internalIPs: readonly string[];
  /** The subnet each of them is in. */
  networks?: readonly string[];
  externalIPs?: readonly string[];
  /** Where its pods get their addresses from, one range per family. */
  podCIDRs: readonly string[];
  kernelVersion: string;
  osImage: string;
  architecture: "amd64" | "arm64" | "arm" | "s390x" | "ppc64le";
  operatingSystem?: "linux" | "windows";
  containerRuntimeVersion?: string;
  kubeletVersion?: string;
  labels?: Labels;
  annotations?: Labels;
  taints?: readonly Taint[];
  providerID?: string;
  capacity?: Record<string, string>;
  /** A simulated node has a CNI configuration from the start: of its image, or of an installation before. */
  cniConfigured?: boolean;
}

export interface PodHandle {
  /** Empty for a pod in its node's network. */
  readonly podIPs: readonly string[];
  /** Runs one container; rejects with an `ImageError` when there is no image to run, a `ContainerStartError` when something is missing. */
  run(container: Container, report: (event: ContainerEvent) => void): Promise<ContainerRun>;
}

export interface ContainerRun {
  containerID: string;
  imageID: string;
}

export type ContainerEvent =
  /** By its startup probe, if it has one. */
  | { is: "started" }
  | { is: "ready" }
  | { is: "unready" }
  /** One answer of a probe that was not a good one. */
  | { is: "unhealthy"; probe: "Startup" | "Liveness" | "Readiness"; why: string }
  /** It is being ended for the answers of a probe. */
  | { is: "killing"; probe: "startup" | "liveness" }
  | { is: "exited"; exitCode: number; reason?: string };

export class ImageError extends Error {}

/** A container that cannot be started as things are: what it refers to is missing. Tried again until it is there. */
export class ContainerStartError extends Error {
  readonly waiting: "CreateContainerConfigError" | "CreateContainerError" | "ContainerCreating";
  readonly event: "Failed" | "FailedMount";

  /** `container`: the runtime itself refused it. */
  constructor(what: "environment" | "volume" | "container", message: string) {
    super(message);
    this.waiting = WAITING[what];
    this.event = what === "volume" ? "FailedMount" : "Failed";
  }
}

const WAITING = {
  environment: "CreateContainerConfigError",
  volume: "ContainerCreating",
  container: "CreateContainerError",
} as const;

export interface LogOptions {
  follow?: boolean;
  /** Of the run before the last restart. */
  previous?: boolean;
  tailLines?: number;
  signal?: AbortSignal;
}

export interface ExecCommand {
  command: readonly string[];
  /** In a terminal: what it says is one stream. */
  tty?: boolean;
}

export interface ExecSession {
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  exited: Promise<number>;
  /** Ends it, if it has not ended. */
  kill(): void;
}
