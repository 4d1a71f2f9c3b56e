import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import type { Container, Pod } from "../../controllers/workload-types.ts";
import { containerEnv } from "../../programs/container-env.ts";
import { ContainerLog } from "../container-log.ts";
import type { ContainerRun, ExecCommand, ExecSession, LogOptions } from "../node-runtime.ts";
import { watchProbes } from "../probes.ts";
import { killGroup, removeGroup } from "./cgroups.ts";
import { ContainerProcess } from "./container-process.ts";
import type { ContainerFrame } from "./container-script.ts";
import { errors } from "./errors.ts";
import { CONTAINER_PATH, type ImageRun, imageRun } from "./images.ts";
import type { Machine } from "./machine.ts";
import { type NodePod, type PodContext, PodDuties, podHostname, podHosts, type Report, reachFrom } from "./node-pod.ts";
import type { Sandbox } from "./pod-sandbox.ts";
import { mountsOf, volumesDirectory } from "./pod-volumes.ts";

/** What a pod has to end in that does not say. */
export const DEFAULT_GRACE_SECONDS = 30;

/** A pod as processes: its namespace, its containers, what they said. */
export class RealPod implements NodePod {
  readonly pod: Pod;
  readonly machine: Machine;
  readonly sandbox: Sandbox | undefined;
  readonly #world: PodContext;
  readonly #logs = new Map<string, ContainerLog>();
  readonly #running = new Map<string, ContainerProcess>();
  readonly #duties: PodDuties;

  constructor(pod: Pod, machine: Machine, sandbox: Sandbox | undefined, world: PodContext) {
    this.pod = pod;
    this.machine = machine;
    this.sandbox = sandbox;
    this.#world = world;
    this.#duties = new PodDuties(pod, machine, world);
  }

  get netns(): Netns {
    return this.sandbox?.netns ?? this.machine.netns;
  }

  get podIPs(): readonly string[] {
    return this.sandbox?.podIPs ?? [];
  }

  log(container: string): ContainerLog {
    const log = this.#logs.get(container) ?? new ContainerLog();
    this.#logs.set(container, log);
    return log;
  }

  logs(container: string, options: LogOptions): AsyncIterable<string> {
    return this.log(container).read(options);
  }

  async exec(container: string, command: ExecCommand): Promise<ExecSession> {
    const process = this.#running.get(container);
    if (!process) throw errors.CONTAINER_NOT_RUNNING(container);
    return process.exec(command);
  }

  async run(container: Container, report: Report): Promise<ContainerRun> {
    const image = imageRun(container, this.#world.releases);
    const id = randomBytes(32).toString("hex");
    this.log(container.name).startRun();
    if (image.is === "process") await this.#start(container, id, image, report);
    else this.#duties.standIn(image, container, (line) => this.#write(container, line), report);
    return { containerID: `vendor://${id}`, imageID: container.image ?? "" };
  }

  kill(): boolean {
    for (const container of this.#running.values()) container.kill();
    return this.#running.size > 0;
  }

  /** Ends its containers and gives back its network, unless its whole node is going. */
  async stop(graceSeconds: number): Promise<void> {
    this.#duties.over.abort();
    await Promise.all([...this.#running.values()].map((container) => container.stop(graceSeconds)));
    await this.#duties.end();
    for (const log of this.#logs.values()) log.end();
    await this.sandbox?.remove();
    killGroup(this.#cgroup);
    await removeGroup(this.#cgroup);
    await rm(this.machine.path(volumesDirectory(this.pod.metadata.uid ?? "")), { recursive: true, force: true });
  }

  get #cgroup(): string {
    return `${this.machine.cgroup}/${this.pod.metadata.uid}`;
  }

  async #start(
    container: Container,
    id: string,
    image: Extract<ImageRun, { is: "process" }>,
    report: Report,
  ): Promise<void> {
    const { machine, pod, sandbox } = this;
    const { spec } = machine;
    const podIPs = sandbox?.podIPs ?? spec.internalIPs;
    const start = { pod, container, node: spec.name, hostIPs: spec.internalIPs, podIPs };
    const { references, apiService } = this.#world;
    const env = await containerEnv(start, apiService, references);
    const mounts = await mountsOf(machine, start, this.#world);
    const frame: ContainerFrame = {
      id: id.slice(0, 12),
      hostname: podHostname(pod, machine),
      hosts: podHosts(this.#world, pod, machine, podIPs),
      files: image.files,
      mounts,
      workingDir: (container["workingDir"] as string | undefined) ?? "/",
      command: image.command,
    };
    const process = await ContainerProcess.start(container.name, {
      machine,
      frame,
      env: { PATH: CONTAINER_PATH, HOME: "/root", ...image.env, ...env },
      ...(sandbox && { netns: sandbox.path }),
      cgroup: `${this.#cgroup}/${container.name}-${frame.id}`,
      write: (line) => this.#write(container, line),
    });
    if (this.#duties.over.signal.aborted) return await process.stop(0);
    this.#running.set(container.name, process);
    this.#follow(container, process, podIPs[0] as string, report);
  }

  #follow(container: Container, process: ContainerProcess, podIP: string, report: Report): void {
    const { kernel, clock } = this.#world;
    const { signal: over } = this.#duties.over;
    const ended = new AbortController();
    over.addEventListener("abort", () => ended.abort(), { once: true, signal: ended.signal });
    void watchProbes({
      container,
      addressOf: reachFrom(kernel, this.machine, podIP),
      exec: (command, timeoutSeconds) => process.execToEnd(command, timeoutSeconds),
      end: () => void process.stop(this.pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS),
      report,
      clock,
      signal: ended.signal,
    });
    void process.exited.then(async (exitCode) => {
      ended.abort();
      if (over.aborted) return;
      this.#running.delete(container.name);
      // What it started and left behind goes with it.
      await process.stop(0);
      report({ is: "exited", exitCode });
    });
  }

  /** Every line is kept with its time; `kubectl logs` shows it when asked. */
  #write({ name }: Container, line: string): void {
    this.log(name).write(`${new Date(this.#world.clock.now()).toISOString()} ${line}`);
  }
}
