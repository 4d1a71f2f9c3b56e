import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Log } from "../../../kit/log.ts";
import type { Container, Pod } from "../../controllers/workload-types.ts";
import { containerEnv } from "../../programs/container-env.ts";
import { watchReadiness } from "../../programs/readiness-probe.ts";
import { ContainerLog } from "../container-log.ts";
import type { ContainerEvent, ContainerRun } from "../node-runtime.ts";
import { killGroup, removeGroup } from "./cgroups.ts";
import { ContainerProcess } from "./container-process.ts";
import type { ContainerFrame } from "./container-script.ts";
import { dial } from "./dial.ts";
import { CONTAINER_PATH, type ImageRun, imageRun } from "./images.ts";
import type { Machine } from "./machine.ts";
import type { Sandbox } from "./pod-sandbox.ts";
import { mountsOf, renewTokens, type VolumeSources, volumesDirectory } from "./pod-volumes.ts";

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

type Report = (event: ContainerEvent) => void;

const TOKEN_RENEWAL_MS = 40 * 60_000;

/** One pod on a real node: its namespace, its containers, what they said. */
export class RealPod {
  readonly pod: Pod;
  readonly machine: Machine;
  readonly sandbox: Sandbox | undefined;
  readonly #world: PodContext;
  readonly #logs = new Map<string, ContainerLog>();
  readonly #running = new Map<string, ContainerProcess>();
  readonly #stops: (() => Promise<void> | void)[] = [];
  readonly #over = new AbortController();

  constructor(pod: Pod, machine: Machine, sandbox: Sandbox | undefined, world: PodContext) {
    this.pod = pod;
    this.machine = machine;
    this.sandbox = sandbox;
    this.#world = world;
    this.#renewLater();
  }

  get podIPs(): readonly string[] {
    return this.sandbox?.podIPs ?? [];
  }

  log(container: string): ContainerLog {
    const log = this.#logs.get(container) ?? new ContainerLog();
    this.#logs.set(container, log);
    return log;
  }

  container(name: string): ContainerProcess | undefined {
    return this.#running.get(name);
  }

  async run(container: Container, report: Report): Promise<ContainerRun> {
    const image = imageRun(container, this.#world.releases);
    const id = randomBytes(32).toString("hex");
    this.log(container.name).startRun();
    if (image.is === "process") await this.#start(container, id, image, report);
    else if (image.is === "service-proxy") this.#serveServices(container, report);
    else {
      this.#write(
        container,
        `${container.image} is not on this machine: it is reported as running, but no process runs`,
      );
      report({ is: "ready" });
    }
    return { containerID: `vendor://${id}`, imageID: container.image ?? "" };
  }

  kill(): boolean {
    for (const container of this.#running.values()) container.kill();
    return this.#running.size > 0;
  }

  /** Ends its containers and gives back its network, unless its whole node is going. */
  async stop(graceSeconds: number): Promise<void> {
    this.#over.abort();
    await Promise.all([...this.#running.values()].map((container) => container.stop(graceSeconds)));
    for (const stop of this.#stops) await stop();
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
    const hostname = pod.spec.hostNetwork ? spec.name : (pod.spec.hostname ?? pod.metadata.name);
    const frame: ContainerFrame = {
      id: id.slice(0, 12),
      hostname: hostname.slice(0, 63),
      hosts: `${this.#world.hosts}${podIPs.map((ip) => `${ip} ${hostname}\n`).join("")}`,
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
    if (this.#over.signal.aborted) return await process.stop(0);
    this.#running.set(container.name, process);
    this.#follow(container, process, podIPs[0] as string, report);
  }

  #follow(container: Container, process: ContainerProcess, podIP: string, report: Report): void {
    const { kernel, clock } = this.#world;
    const ended = new AbortController();
    this.#over.signal.addEventListener("abort", () => ended.abort(), { once: true });
    const probe = container.readinessProbe as { httpGet?: { host?: string } } | undefined;
    const asked = probe?.httpGet?.host;
    const host = asked === "localhost" ? "127.0.0.1" : (asked ?? podIP);
    void watchReadiness({
      container,
      addressOf: (port) => ({ host, port, connect: () => dial(kernel, this.machine.netns, { host, port }) }),
      report: (ready) => report({ is: ready ? "ready" : "unready" }),
      clock,
      signal: ended.signal,
    });
    void process.exited.then(async (exitCode) => {
      ended.abort();
      if (this.#over.signal.aborted) return;
      this.#running.delete(container.name);
      // What it started and left behind goes with it.
      await process.stop(0);
      report({ is: "exited", exitCode });
    });
  }

  #serveServices(container: Container, report: Report): void {
    this.#write(container, `serving the cluster's services on ${this.machine.spec.name}`);
    this.#stops.push(this.#world.serveServices(this.machine, this.pod));
    report({ is: "ready" });
  }

  #renewLater(): void {
    const cancel = this.#world.clock.setTimeout(() => {
      void renewTokens(this.machine, this.pod, this.#world)
        .catch((error: unknown) => this.#world.log.warn({ error, pod: this.pod.metadata.name }, "token not renewed"))
        .then(() => this.#renewLater());
    }, TOKEN_RENEWAL_MS);
    if (this.#over.signal.aborted) cancel();
    else this.#over.signal.addEventListener("abort", cancel, { once: true });
  }

  /** Every line is kept with its time; `kubectl logs` shows it when asked. */
  #write({ name }: Container, line: string): void {
    this.log(name).write(`${new Date(this.#world.clock.now()).toISOString()} ${line}`);
  }
}
