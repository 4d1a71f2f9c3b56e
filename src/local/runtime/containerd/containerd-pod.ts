import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import { GrpcError } from "../../../kit/grpc/grpc-frames.ts";
import type { Sent } from "../../../kit/grpc/protobuf.ts";
import type { Container, Pod } from "../../controllers/workload-types.ts";
import { containerEnv, expand } from "../../programs/container-env.ts";
import { execSession, withTerminal } from "../netns/container-process.ts";
import { errors } from "../netns/errors.ts";
import type { Machine } from "../netns/machine.ts";
import {
  type NodePod,
  type PodContext,
  PodDuties,
  type PodMaker,
  podHostname,
  podHosts,
  type Report,
  reachFrom,
} from "../netns/node-pod.ts";
import { untilDone } from "../netns/pod-sandbox.ts";
import { mountsOf, volumesDirectory } from "../netns/pod-volumes.ts";
import { DEFAULT_GRACE_SECONDS } from "../netns/real-pod.ts";
import { SYSTEM_PATH } from "../netns/run-command.ts";
import {
  type ContainerRun,
  ContainerStartError,
  type ExecCommand,
  type ExecSession,
  type LogOptions,
} from "../node-runtime.ts";
import { watchProbes } from "../probes.ts";
import {
  containerConfig,
  containerLogPath,
  POD_UID_LABEL,
  podLogDirectory,
  type SandboxConfig,
  sandboxConfig,
} from "./container-config.ts";
import { type ContainerImage, containerImage } from "./container-images.ts";
import type { CriClient } from "./cri-client.ts";
import { readCriLog } from "./cri-log.ts";
import type { CRI_CALLS } from "./cri-messages.ts";
import type { BuiltImage } from "./image-build.ts";
import { type NodeContainerd, RUNC_ROOT, startContainerd } from "./node-containerd.ts";

/** Pods that are containers of the node's own container runtime. */
export function containerPods(image: BuiltImage, context: () => PodContext): PodMaker<ContainerdPod> {
  const runtimes = new Map<Machine, NodeContainerd>();
  /** Each try has a name of its own, as a kubelet gives it one. */
  const tries = new Map<string, number>();
  return {
    async prepare(machine) {
      const runtime = await startContainerd(machine, image);
      runtimes.set(machine, runtime);
      return async () => {
        runtimes.delete(machine);
        runtime.close();
      };
    },
    async start(pod, machine, stays) {
      const runtime = runtimes.get(machine) as NodeContainerd;
      const uid = pod.metadata.uid ?? "";
      const attempt = tries.get(uid) ?? 0;
      tries.set(uid, attempt + 1);
      const config = sandboxConfig(pod, podHostname(pod, machine), attempt);
      try {
        mkdirSync(machine.path(podLogDirectory(pod)), { recursive: true });
        const { pod_sandbox_id: id } = await runtime.cri.call("RunPodSandbox", { config });
        const sandbox = { id, config, ...(await networkOf(runtime.cri, id)) };
        return new ContainerdPod({ pod, machine, runtime, image, sandbox, context: context(), stays });
      } catch (error) {
        // What failed halfway is undone, however long that takes; the next try has a name of its own.
        void removeSandboxes(runtime.cri, await sandboxesOf(runtime.cri, uid), stays);
        throw error;
      }
    },
  };
}

interface Sandbox {
  id: string;
  config: SandboxConfig;
  podIPs: readonly string[];
  /** Of its network namespace, on the node; none in the node's own. */
  netns: string | undefined;
}

async function networkOf(cri: CriClient, id: string): Promise<Pick<Sandbox, "podIPs" | "netns">> {
  const { status, info } = await cri.call("PodSandboxStatus", { pod_sandbox_id: id, verbose: true });
  const { ip = "", additional_ips: more = [] } = status?.network ?? {};
  const { runtimeSpec } = JSON.parse(info["info"] ?? "{}") as {
    runtimeSpec?: { linux?: { namespaces?: { type: string; path?: string }[] } };
  };
  const netns = runtimeSpec?.linux?.namespaces?.find(({ type }) => type === "network")?.path;
  return { podIPs: [ip, ...more.map((one) => one.ip ?? "")].filter(Boolean), netns };
}

/** Of all tries of a pod. */
async function sandboxesOf(cri: CriClient, uid: string): Promise<string[]> {
  const { items } = await cri.call("ListPodSandbox", { filter: { label_selector: { [POD_UID_LABEL]: uid } } });
  return items.map(({ id = "" }) => id);
}

/** Nothing is over before the plugin has given back what it gave; a node that goes takes everything along. */
async function removeSandboxes(cri: CriClient, ids: readonly string[], stays: () => boolean): Promise<void> {
  for (const id of ids) {
    await untilDone(async () => {
      await cri.call("StopPodSandbox", { pod_sandbox_id: id });
      await cri.call("RemovePodSandbox", { pod_sandbox_id: id });
    }, stays);
  }
}

interface PodParts {
  pod: Pod;
  machine: Machine;
  runtime: NodeContainerd;
  image: BuiltImage;
  sandbox: Sandbox;
  context: PodContext;
  stays: () => boolean;
}

type Creation = Sent<(typeof CRI_CALLS)["CreateContainer"][0]>;

/** A pod as containers, by the node's container runtime. */
export class ContainerdPod implements NodePod {
  readonly pod: Pod;
  readonly machine: Machine;
  readonly podIPs: readonly string[];
  readonly netns: Netns;
  readonly #parts: PodParts;
  readonly #duties: PodDuties;
  readonly #running = new Map<string, string>();
  readonly #attempts = new Map<string, number>();

  constructor(parts: PodParts) {
    const { pod, machine, sandbox, context } = parts;
    this.#parts = parts;
    this.pod = pod;
    this.machine = machine;
    this.podIPs = pod.spec.hostNetwork ? [] : sandbox.podIPs;
    this.netns = sandbox.netns ? context.kernel.netns.openPath(machine.path(sandbox.netns)) : machine.netns;
    this.#duties = new PodDuties(pod, machine, context);
  }

  async run(container: Container, report: Report): Promise<ContainerRun> {
    const image = containerImage(container, this.#parts.image);
    const attempt = this.#nextAttempt(container);
    if (image.is === "container") return await this.#start(container, image, attempt, report);
    this.#attempts.set(container.name, attempt);
    const write = (line: string) => this.#write(container, attempt, line);
    this.#duties.standIn(image, container, write, report);
    return {
      containerID: `vendor://${this.#parts.sandbox.id}-${container.name}-${attempt}`,
      imageID: container.image ?? "",
    };
  }

  async *logs(container: string, options: LogOptions): AsyncIterable<string> {
    const attempt = (this.#attempts.get(container) ?? 0) - (options.previous ? 1 : 0);
    const signal = AbortSignal.any([this.#duties.over.signal, ...(options.signal ? [options.signal] : [])]);
    yield* readCriLog(this.#logPath({ name: container }, attempt), { ...options, signal });
  }

  async exec(container: string, { command, tty = false }: ExecCommand): Promise<ExecSession> {
    const id = this.#running.get(container);
    if (!id) throw errors.CONTAINER_NOT_RUNNING(container);
    const inside = ["runc", "--root", RUNC_ROOT, "exec", ...(tty ? ["--tty"] : []), id, ...command];
    const [program = "", ...args] = [...this.machine.on(), ...(tty ? withTerminal(inside) : inside)];
    const child = spawn(program, args, { detached: true, env: { PATH: SYSTEM_PATH }, stdio: "pipe" });
    // It passes on to the command what it is sent.
    return execSession(child, "SIGTERM");
  }

  kill(): boolean {
    for (const id of this.#running.values())
      void this.#cri.call("StopContainer", { container_id: id, timeout: 0 }).catch(() => undefined);
    return this.#running.size > 0;
  }

  async stop(graceSeconds: number): Promise<void> {
    const { stays } = this.#parts;
    const uid = this.pod.metadata.uid ?? "";
    this.#duties.over.abort();
    const running = [...this.#running.values()];
    if (stays()) await Promise.allSettled(running.map((id) => this.#end(id, graceSeconds)));
    await this.#duties.end();
    if (this.netns !== this.machine.netns) this.netns.close();
    if (!stays()) return;
    await removeSandboxes(this.#cri, await sandboxesOf(this.#cri, uid), stays);
    for (const path of [volumesDirectory(uid), podLogDirectory(this.pod)])
      await rm(this.machine.path(path), { recursive: true, force: true });
  }

  get #cri(): CriClient {
    return this.#parts.runtime.cri;
  }

  /** Counted from what a former kubelet reported of it. */
  #nextAttempt({ name }: Container): number {
    const { status } = this.pod;
    const known = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
    const before = this.#attempts.get(name) ?? (known.find((one) => one.name === name)?.restartCount ?? 0) - 1;
    return before + 1;
  }

  async #start(
    container: Container,
    image: Extract<ContainerImage, { is: "container" }>,
    attempt: number,
    report: Report,
  ): Promise<ContainerRun> {
    const { machine, pod } = this;
    const { sandbox, runtime, context } = this.#parts;
    const { spec } = machine;
    const podIPs = this.podIPs.length > 0 ? this.podIPs : spec.internalIPs;
    const start = { pod, container, node: spec.name, hostIPs: spec.internalIPs, podIPs };
    const env = await containerEnv(start, context.apiService, context.references);
    const mounts = await mountsOf(machine, start, context);
    const hosts = this.#hostsFile(podIPs);
    const expanded = {
      ...image,
      command: image.command.map((word) => expand(word, env)),
      args: image.args.map((word) => expand(word, env)),
    };
    const config = containerConfig({
      ...{ pod, container, image: expanded, attempt, env, limits: runtime.limits },
      mounts: [...mounts, ...(mounts.some(({ to }) => to === hosts.to) ? [] : [hosts])],
    });
    mkdirSync(dirname(this.#logPath(container, attempt)), { recursive: true });
    const id = await this.#create({ pod_sandbox_id: sandbox.id, config, sandbox_config: sandbox.config });
    const { status } = await this.#cri.call("ContainerStatus", { container_id: id });
    this.#attempts.set(container.name, attempt);
    this.#follow(container, id, podIPs[0] as string, report);
    return { containerID: `containerd://${id}`, imageID: status?.image_ref ?? "" };
  }

  /** What the runtime refuses is said in its words, and tried again. */
  async #create(request: Creation): Promise<string> {
    let id: string | undefined;
    try {
      ({ container_id: id } = await this.#cri.call("CreateContainer", request));
      await this.#cri.call("StartContainer", { container_id: id });
      return id;
    } catch (error) {
      if (id) await this.#cri.call("RemoveContainer", { container_id: id }).catch(() => undefined);
      if (error instanceof GrpcError) throw new ContainerStartError("container", error.message);
      throw error;
    }
  }

  #follow(container: Container, id: string, podIP: string, report: Report): void {
    const { context, runtime } = this.#parts;
    const { kernel, clock } = context;
    const { signal: over } = this.#duties.over;
    const ended = new AbortController();
    over.addEventListener("abort", () => ended.abort(), { once: true, signal: ended.signal });
    const grace = this.pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
    void watchProbes({
      container,
      addressOf: reachFrom(kernel, this.machine, podIP),
      exec: (command, timeoutSeconds) => this.#ask(id, command, timeoutSeconds),
      end: () => void this.#end(id, grace).catch(() => undefined),
      patient: true,
      report,
      clock,
      signal: ended.signal,
    });
    this.#running.set(container.name, id);
    void runtime.ended(id, over).then(async (end) => {
      ended.abort();
      if (!end) return;
      this.#running.delete(container.name);
      await this.#cri.call("RemoveContainer", { container_id: id }).catch(() => undefined);
      report({ is: "exited", ...end });
    });
  }

  async #ask(id: string, command: readonly string[], timeoutSeconds: number) {
    const answer = await this.#cri.call("ExecSync", { container_id: id, cmd: command, timeout: timeoutSeconds });
    return { exitCode: answer.exit_code, said: `${answer.stdout}${answer.stderr}` };
  }

  async #end(id: string, graceSeconds: number): Promise<void> {
    const patience = (graceSeconds + 30) * 1000;
    await this.#cri.call("StopContainer", { container_id: id, timeout: graceSeconds }, patience);
  }

  #hostsFile(podIPs: readonly string[]) {
    const from = join(volumesDirectory(this.pod.metadata.uid ?? ""), "etc-hosts");
    mkdirSync(dirname(this.machine.path(from)), { recursive: true });
    writeFileSync(this.machine.path(from), podHosts(this.#parts.context, this.pod, this.machine, podIPs));
    return { from, to: "/etc/hosts", isDirectory: false, readOnly: false, propagation: "None" } as const;
  }

  #logPath(container: Pick<Container, "name">, attempt: number): string {
    return this.machine.path(join(podLogDirectory(this.pod), containerLogPath(container, attempt)));
  }

  #write(container: Container, attempt: number, line: string): void {
    const path = this.#logPath(container, attempt);
    mkdirSync(dirname(path), { recursive: true });
    appendFileSync(path, `${new Date(this.#parts.context.clock.now()).toISOString()} stdout F ${line}\n`);
  }
}
