import { type Backoff, backoffDelay } from "../../kit/backoff.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { EventRecorder } from "../controllers/event-recorder.ts";
import type { Container, Pod, PodStatus } from "../controllers/workload-types.ts";
import { NETWORK_NOT_READY } from "./cni-configuration.ts";
import {
  type ContainerEvent,
  type ContainerRun,
  ContainerStartError,
  ImageError,
  type NodeRuntime,
  type PodHandle,
} from "./node-runtime.ts";
import { type ContainerLifecycle, FRESH, podStatus, stateOf } from "./pod-status.ts";

export interface PodWorkerOptions {
  runtime: NodeRuntime;
  recorder: EventRecorder;
  clock: Clock;
  node: string;
  hostIPs: readonly string[];
  /** The pod's status may have changed. */
  changed(): void;
}

/** What a kubelet waits before it tries again: 10 s, 20 s, … 5 min. A container's first end costs it nothing. */
const RETRY: Backoff = { initialMs: 10_000, maxMs: 300_000, jitter: 0 };
/** A container that ran this long resets its back-off. */
const BACKOFF_RESET_MS = 600_000;
/** What a kubelet takes of a log as the message of an end. */
const MESSAGE_LINES = 80;
const MESSAGE_BYTES = 2048;
const SANDBOX_RETRY_MS = 1_000;
const REFERENCES_RETRY_MS = 1_000;

type Exit = Extract<ContainerEvent, { is: "exited" }>;

/** The life of one pod on its node, from sandbox to end: init containers in order, then all others, restarted as the pod asks. */
export class PodWorker {
  readonly uid: string;
  #pod: Pod;
  readonly #options: PodWorkerOptions;
  readonly #containers = new Map<string, ContainerLifecycle>();
  readonly #stopping = new AbortController();
  readonly #startedAt: number;
  #podIPs: readonly string[] = [];
  #outcome: "Succeeded" | "Failed" | undefined;
  #stopped: "no" | "stopping" | "yes" = "no";

  constructor(pod: Pod, options: PodWorkerOptions) {
    this.uid = pod.metadata.uid ?? "";
    this.#pod = pod;
    this.#options = options;
    this.#startedAt = options.clock.now();
    this.#remember(pod);
    void this.#live().catch(() => options.changed());
  }

  get pod(): Pod {
    return this.#pod;
  }

  /** Takes the newest pod object: conditions others wrote on it are kept. What the watch brings late is older than what we wrote. */
  update(pod: Pod): void {
    const version = (object: Pod) => Number(object.metadata.resourceVersion ?? 0);
    if (version(pod) >= version(this.#pod)) this.#pod = pod;
  }

  status(): PodStatus {
    const { clock, hostIPs } = this.#options;
    const life = {
      startedAt: this.#startedAt,
      hostIPs,
      podIPs: this.#podIPs,
      containers: this.#containers,
      outcome: this.#outcome,
    };
    return podStatus(this.#pod, life, clock.now());
  }

  get stopped(): boolean {
    return this.#stopped === "yes";
  }

  /** Ends it; `changed` is called when it has ended. */
  stop(graceSeconds: number): void {
    if (this.#stopped !== "no") return;
    this.#stopped = "stopping";
    this.#stopping.abort();
    for (const { name } of this.#pod.spec.containers) {
      if (this.#containers.get(name)?.state.at !== "running") continue;
      this.#options.recorder.record(this.#pod, "Normal", "Killing", `Stopping container ${name}`);
    }
    this.#end(graceSeconds);
  }

  /** Ends it at once without a report, as a machine does that loses power. */
  halt(): void {
    if (this.#stopped !== "no") return;
    this.#stopped = "stopping";
    this.#stopping.abort();
    this.#end(0);
  }

  #end(graceSeconds: number): void {
    void this.#options.runtime
      .stopPod(this.uid, graceSeconds)
      .catch(() => undefined)
      .then(() => {
        this.#stopped = "yes";
        this.#options.changed();
      });
  }

  /** A kubelet that comes back goes on counting where the last one stopped. */
  #remember(pod: Pod): void {
    const known = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
    for (const { name, restartCount, lastState, imageID } of known) {
      this.#containers.set(name, { ...FRESH, restarts: restartCount, last: lastState ?? {}, imageID: imageID ?? "" });
    }
  }

  async #live(): Promise<void> {
    const handle = await this.#sandbox();
    if (!handle) return;
    this.#podIPs = handle.podIPs;
    for (const container of this.#pod.spec.initContainers ?? []) {
      if (!(await this.#runInit(handle, container))) return;
    }
    const exits = await Promise.all(this.#pod.spec.containers.map((container) => this.#runMain(handle, container)));
    if (this.#stopping.signal.aborted) return;
    this.#outcome = exits.every((code) => code === 0) ? "Succeeded" : "Failed";
    this.#options.changed();
  }

  async #sandbox(): Promise<PodHandle | undefined> {
    const { runtime, node, recorder, clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      if (!this.#pod.spec.hostNetwork && !runtime.networkReady(node)) {
        recorder.record(this.#pod, "Warning", "NetworkNotReady", `network is not ready: ${NETWORK_NOT_READY}`);
        this.#options.changed();
        await sleep(clock, SANDBOX_RETRY_MS, this.#stopping.signal);
        continue;
      }
      try {
        return await runtime.startPod(this.#pod, node);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        const text = `Failed to create pod sandbox: ${why}`;
        recorder.record(this.#pod, "Warning", "FailedCreatePodSandBox", text);
        this.#options.changed();
        await sleep(clock, SANDBOX_RETRY_MS, this.#stopping.signal);
      }
    }
    return undefined;
  }

  /** False when the pod cannot go on. */
  async #runInit(handle: PodHandle, container: Container): Promise<boolean> {
    if (container.restartPolicy === "Always") {
      await this.#startSidecar(handle, container);
      return !this.#stopping.signal.aborted;
    }
    const policy = this.#pod.spec.restartPolicy === "Never" ? "Never" : "OnFailure";
    const code = await this.#runUntilDone(handle, container, policy);
    if (code === 0 || this.#stopping.signal.aborted) return code === 0;
    this.#outcome = "Failed";
    this.#options.changed();
    return false;
  }

  /** A sidecar runs in parallel with everything that follows; the next container waits only until it has started. */
  async #startSidecar(handle: PodHandle, container: Container): Promise<void> {
    await new Promise<void>((started) => {
      void this.#runUntilDone(handle, container, "Always", started).then(() => started());
    });
  }

  #runMain(handle: PodHandle, container: Container): Promise<number> {
    return this.#runUntilDone(handle, container, this.#pod.spec.restartPolicy ?? "Always");
  }

  /** The exit code after which the container is not started again; -1 when the pod was stopped. */
  async #runUntilDone(handle: PodHandle, container: Container, policy: string, onStart?: () => void): Promise<number> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted) {
      const began = clock.now();
      const exit = await this.#runOnce(handle, container, onStart);
      if (signal.aborted || !exit) break;
      const over = policy === "Never" || (policy === "OnFailure" && exit.exitCode === 0);
      if (over) return exit.exitCode;
      failures = clock.now() - began >= BACKOFF_RESET_MS ? 1 : failures + 1;
      await this.#restart(container, failures);
    }
    return -1;
  }

  async #restart(container: Container, failures: number): Promise<void> {
    const life = this.#lifeOf(container);
    const ended = { ...life, last: stateOf(life.state, life.containerID) };
    this.#containers.set(container.name, ended);
    if (failures > 1) await this.#backOff(container, backoffDelay(RETRY, failures - 1, 0));
    const waited = this.#lifeOf(container);
    this.#containers.set(container.name, { ...waited, restarts: waited.restarts + 1 });
  }

  async #backOff(container: Container, delay: number): Promise<void> {
    const { clock, recorder } = this.#options;
    const { namespace, name } = this.#pod.metadata;
    const message = `back-off ${delay / 1000}s restarting failed container=${container.name} pod=${name}_${namespace}(${this.uid})`;
    const text = `Back-off restarting failed container ${container.name} in pod ${name}_${namespace}(${this.uid})`;
    recorder.record(this.#pod, "Warning", "BackOff", text);
    const state = { at: "waiting", reason: "CrashLoopBackOff", message } as const;
    this.#set(container, { ...this.#lifeOf(container), state });
    await sleep(clock, delay, this.#stopping.signal);
  }

  async #runOnce(handle: PodHandle, container: Container, onStart?: () => void): Promise<Exit | undefined> {
    const { clock } = this.#options;
    const since = clock.now();
    let ended: (exit: Exit | undefined) => void = () => {};
    const exit = new Promise<Exit | undefined>((resolve) => {
      ended = resolve;
    });
    const stop = () => ended(undefined);
    this.#stopping.signal.addEventListener("abort", stop, { once: true });
    void exit.then(() => this.#stopping.signal.removeEventListener("abort", stop));
    const early: ContainerEvent[] = [];
    let started = false;
    const report = (event: ContainerEvent) => {
      if (this.#stopping.signal.aborted) return;
      if (!started) {
        early.push(event);
        return;
      }
      const life = this.#lifeOf(container);
      if (event.is === "unhealthy" || event.is === "killing") this.#recordProbe(container, event);
      else if (event.is === "exited") {
        const { exitCode, reason = exitCode === 0 ? "Completed" : "Error" } = event;
        void this.#terminationMessage(container, exitCode).then((message) => {
          const state = {
            at: "ended",
            since,
            until: clock.now(),
            exitCode,
            reason,
            ...(message && { message }),
          } as const;
          this.#set(container, { ...this.#lifeOf(container), state });
          ended(event);
        });
      } else if (life.state.at === "running") {
        this.#set(container, { ...life, state: { ...life.state, started: true, ready: event.is === "ready" } });
      }
    };
    const run = await this.#start(handle, container, report);
    if (!run) return undefined;
    this.#containers.set(container.name, {
      ...this.#lifeOf(container),
      ...run,
      state: { at: "running", since, started: container.startupProbe === undefined, ready: false },
    });
    // Events that arrived before start returned are part of the first report.
    started = true;
    for (const event of early) report(event);
    this.#options.changed();
    onStart?.();
    return await exit;
  }

  #recordProbe({ name }: Container, event: Extract<ContainerEvent, { is: "unhealthy" | "killing" }>): void {
    const { recorder } = this.#options;
    if (event.is === "unhealthy")
      recorder.record(this.#pod, "Warning", "Unhealthy", `${event.probe} probe failed: ${event.why}`);
    else
      recorder.record(
        this.#pod,
        "Normal",
        "Killing",
        `Container ${name} failed ${event.probe} probe, will be restarted`,
      );
  }

  /** The end of its log, where the container asks for it. No container of an embedded node writes a message of its own. */
  async #terminationMessage(container: Container, exitCode: number): Promise<string | undefined> {
    if (exitCode === 0 || container["terminationMessagePolicy"] !== "FallbackToLogsOnError") return undefined;
    const lines: string[] = [];
    try {
      for await (const line of this.#options.runtime.logs(this.uid, container.name, { tailLines: MESSAGE_LINES })) {
        lines.push(line.slice(line.indexOf(" ") + 1));
      }
    } catch {
      return undefined;
    }
    return lines.join("\n").slice(-MESSAGE_BYTES);
  }

  /** Starts it, however long its image takes to come; undefined when the pod was stopped meanwhile. */
  async #start(
    handle: PodHandle,
    container: Container,
    report: (event: ContainerEvent) => void,
  ): Promise<ContainerRun | undefined> {
    const { clock, recorder } = this.#options;
    for (let failures = 1; !this.#stopping.signal.aborted; failures++) {
      try {
        const run = await handle.run(container, report);
        const pulled = `Container image "${container.image}" already present on machine`;
        recorder.record(this.#pod, "Normal", "Pulled", pulled);
        recorder.record(this.#pod, "Normal", "Created", `Created container: ${container.name}`);
        recorder.record(this.#pod, "Normal", "Started", `Started container ${container.name}`);
        return run;
      } catch (error) {
        if (error instanceof ContainerStartError) await this.#waitForReferences(container, error);
        else if (error instanceof ImageError) {
          await this.#waitForImage(container, error.message, backoffDelay(RETRY, failures, 0), clock);
        } else throw error;
      }
    }
    return undefined;
  }

  async #waitForImage(container: Container, why: string, delay: number, clock: Clock): Promise<void> {
    const { recorder } = this.#options;
    const image = container.image ?? "";
    recorder.record(this.#pod, "Warning", "Failed", `Failed to pull image "${image}": ${why}`);
    recorder.record(this.#pod, "Normal", "BackOff", `Back-off pulling image "${image}"`);
    const message = `Back-off pulling image "${image}": ErrImagePull: ${why}`;
    this.#set(container, {
      ...this.#lifeOf(container),
      state: { at: "waiting", reason: "ImagePullBackOff", message },
    });
    await sleep(clock, delay, this.#stopping.signal);
  }

  /** What a container refers to may be created at any moment; a kubelet checks again at every sync. */
  async #waitForReferences(container: Container, error: ContainerStartError): Promise<void> {
    const { recorder, clock } = this.#options;
    const text = error.event === "Failed" ? `Error: ${error.message}` : error.message;
    recorder.record(this.#pod, "Warning", error.event, text);
    const message = error.event === "Failed" ? error.message : undefined;
    const state = { at: "waiting", reason: error.waiting, ...(message && { message }) } as const;
    this.#set(container, { ...this.#lifeOf(container), state });
    await sleep(clock, REFERENCES_RETRY_MS, this.#stopping.signal);
  }

  #lifeOf({ name }: Container): ContainerLifecycle {
    return this.#containers.get(name) ?? FRESH;
  }

  #set({ name }: Container, life: ContainerLifecycle): void {
    this.#containers.set(name, life);
    this.#options.changed();
  }
}
