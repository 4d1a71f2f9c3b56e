import type { Container, Pod } from "../controllers/workload-types.ts";
import type { ContainerEvent } from "./node-runtime.ts";

/** Runs for real what a simulated node would otherwise only report as running. */
export interface ContainerRunner {
  /** Undefined: it has nothing to run for this container, which is then simulated. */
  run(start: ContainerStart): Promise<RunningContainer> | undefined;
}

export interface ContainerStart {
  pod: Pod;
  container: Container;
  node: string;
  hostIPs: readonly string[];
  /** The node's own for a pod in its network. */
  podIPs: readonly string[];
  /** One line of its output. */
  write(line: string): void;
  report(event: ContainerEvent): void;
}

export interface RunningContainer {
  /** Asks it to end, and comes back when it has; after the grace period it is cut off and no longer waited for. */
  stop(graceSeconds: number): Promise<void>;
}
