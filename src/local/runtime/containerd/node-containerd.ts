import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { inGroup, makeGroup } from "../netns/cgroups.ts";
import type { Machine } from "../netns/machine.ts";
import { runCommand, SYSTEM_PATH } from "../netns/run-command.ts";
import { shellLine } from "../netns/shell-words.ts";
import { type CriClient, criClient } from "./cri-client.ts";
import { CONTAINER_STATE } from "./cri-messages.ts";
import { errors } from "./errors.ts";
import type { BuiltImage } from "./image-build.ts";

/** The container runtime of one node: the distribution's, with directories and a socket of the node. */
export interface NodeContainerd {
  readonly cri: CriClient;
  /** Whether the node can hold processes to limits. */
  readonly limits: boolean;
  /** The exit code of a container, when it has ended. */
  ended(containerID: string, signal: AbortSignal): Promise<{ exitCode: number; reason?: string } | undefined>;
  close(): void;
}

const SOCKET = "/run/containerd/containerd.sock";
const CONFIG = "/etc/containerd/config.toml";
const RUNC_WITHOUT_LIMITS = "/usr/local/sbin/runc-without-limits";
const LOG = "/var/log/containerd.log";
/** Where kubelets' containers are, and where runc keeps what it knows of them. */
const CONTAINERD_NAMESPACE = "k8s.io";
export const RUNC_ROOT = `/run/containerd/runc/${CONTAINERD_NAMESPACE}`;

const START_MS = 60_000;
const ASK_MS = 50;
/** As often as a kubelet's own look at its containers would have to be for nothing to wait on it. */
const LOOK_MS = 200;
/** What limits of a container are made of. */
const CONTROLLERS = ["cpu", "memory", "pids"];

export async function startContainerd(machine: Machine, image: BuiltImage): Promise<NodeContainerd> {
  const limits = enableControllers(machine.cgroup);
  writeFileSync(machine.path(CONFIG), containerdConfig(image.pause.reference, limits));
  if (!limits) writeFileSync(machine.path(RUNC_WITHOUT_LIMITS), runcWithoutLimits(), { mode: 0o755 });
  const log = openSync(machine.path(LOG), "a");
  const [command = "", ...args] = [
    ...inGroup(makeGroup(`${machine.cgroup}/containerd`)),
    ...[...machine.on(), "containerd", "--config", CONFIG],
  ];
  const child = spawn(command, args, { detached: true, env: { PATH: SYSTEM_PATH }, stdio: ["ignore", log, log] });
  closeSync(log);
  const gone = new AbortController();
  child.once("error", () => gone.abort()).once("exit", () => gone.abort());
  const cri = criClient(machine.path(SOCKET));
  const words = () => readFileSync(machine.path(LOG), "utf8").trim().split("\n").slice(-3).join("; ");
  await answering(cri, gone.signal).catch((error: Error) => {
    throw errors.CONTAINER_RUNTIME_FAILED(machine.spec.name, gone.signal.aborted ? words() : error.message);
  });
  await importImages(machine, image);
  const looking = lookAtContainers(cri);
  return {
    cri,
    limits,
    ended: looking.ended,
    close() {
      looking.stop();
      cri.close();
    },
  };
}

/** Nothing is pulled, and what plugins of containerd this node cannot have is not tried. */
function containerdConfig(pause: string, limits: boolean): string {
  const cri = `plugins."io.containerd.grpc.v1.cri"`;
  return [
    "version = 2",
    `disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]`,
    `[grpc]\n  address = "${SOCKET}"`,
    `[${cri}]\n  sandbox_image = "${pause}"\n  restrict_oom_score_adj = true`,
    `[${cri}.cni]\n  bin_dir = "/opt/cni/bin"\n  conf_dir = "/etc/cni/net.d"`,
    `[${cri}.containerd]\n  snapshotter = "overlayfs"`,
    `[${cri}.containerd.runtimes.runc]\n  runtime_type = "io.containerd.runc.v2"`,
    `[${cri}.containerd.runtimes.runc.options]\n  SystemdCgroup = false\n  BinaryName = "${limits ? "runc" : RUNC_WITHOUT_LIMITS}"`,
    "",
  ].join("\n");
}

/** In front of runc: containerd gives every pod a share of the processor, and runc fails where no controller could give it. */
function runcWithoutLimits(): string {
  return [
    "#!/bin/sh",
    `case " $* " in *" create "*) ${shellLine(process.execPath, "-e", KEEP_DEVICES, "--")} "$@" || exit ;; esac`,
    'exec runc "$@"',
    "",
  ].join("\n");
}

/** Rules for devices need no controller. */
const KEEP_DEVICES = `
const fs = require("fs");
const path = process.argv[process.argv.indexOf("--bundle") + 1] + "/config.json";
const spec = JSON.parse(fs.readFileSync(path, "utf8"));
const { devices } = spec.linux.resources || {};
spec.linux.resources = { devices };
fs.writeFileSync(path, JSON.stringify(spec));
`;

/** Gives the node its share of the controllers. False where this machine has them in other hierarchies: then there are no limits. */
function enableControllers(cgroup: string): boolean {
  try {
    for (const group of [cgroup.slice(0, cgroup.lastIndexOf("/")), cgroup])
      writeFileSync(`${group}/cgroup.subtree_control`, CONTROLLERS.map((name) => `+${name}`).join(" "));
    return true;
  } catch {
    return false;
  }
}

async function answering(cri: CriClient, gone: AbortSignal): Promise<void> {
  for (const until = Date.now() + START_MS; ; ) {
    try {
      await cri.call("Version", {}, 1_000);
      return;
    } catch (error) {
      if (gone.aborted || Date.now() > until) throw error;
      await new Promise((wake) => setTimeout(wake, ASK_MS));
    }
  }
}

/** The layout is read here and unpacked there: it need not be on a file system the node has. */
async function importImages(machine: Machine, { layout }: BuiltImage): Promise<void> {
  const importing = [
    ...machine.on(),
    "ctr",
    "--address",
    SOCKET,
    "--namespace",
    CONTAINERD_NAMESPACE,
    "images",
    "import",
    "-",
  ];
  const script = 'layout=$0; tar -C "$layout" -cf - . | "$@"';
  const { code, out, err } = await runCommand(["sh", "-c", script, layout, ...importing], { timeoutMs: 600_000 });
  if (code !== 0) throw errors.CONTAINER_RUNTIME_FAILED(machine.spec.name, (err || out).trim());
}

interface Waiter {
  take(end: { exitCode: number; reason?: string } | undefined): void;
}

/** One look at all containers, however many are waited for. */
function lookAtContainers(cri: CriClient) {
  const waiters = new Map<string, Waiter>();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const look = async () => {
    const { containers } = await cri.call("ListContainers", {});
    const states = new Map(containers.map(({ id = "", state }) => [id, state]));
    for (const [id, waiter] of [...waiters]) {
      const state = states.get(id);
      if (state === CONTAINER_STATE.running || state === CONTAINER_STATE.created) continue;
      waiters.delete(id);
      waiter.take(await endOf(cri, id));
    }
  };
  const later = () => {
    if (stopped || timer || waiters.size === 0) return;
    timer = setTimeout(() => {
      void look()
        .catch(() => undefined)
        .then(() => {
          timer = undefined;
          later();
        });
    }, LOOK_MS).unref();
  };
  return {
    ended(id: string, signal: AbortSignal) {
      return new Promise<{ exitCode: number; reason?: string } | undefined>((resolve) => {
        if (signal.aborted) return resolve(undefined);
        const give = () => take(undefined);
        const take: Waiter["take"] = (end) => {
          waiters.delete(id);
          signal.removeEventListener("abort", give);
          resolve(end);
        };
        signal.addEventListener("abort", give, { once: true });
        waiters.set(id, { take });
        later();
      });
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      for (const { take } of [...waiters.values()]) take(undefined);
    },
  };
}

const UNKNOWN_END = { exitCode: 137, reason: "ContainerStatusUnknown" };

async function endOf(cri: CriClient, id: string): Promise<{ exitCode: number; reason?: string }> {
  try {
    const { status } = await cri.call("ContainerStatus", { container_id: id });
    const { exit_code: exitCode = 0, reason } = status ?? {};
    return reason ? { exitCode, reason } : { exitCode };
  } catch {
    return UNKNOWN_END;
  }
}
