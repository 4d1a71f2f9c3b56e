import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Whether kube-proxy was away from this node while eBPF served it. On disk: an agent that restarts, or a node that reboots, still knows. */
export interface ProxyAway {
  get(): boolean;
  set(away: boolean): void;
}

export interface ProxySeen {
  /** eBPF serves Services here, and nothing is left to do. */
  ebpfServes: boolean;
  /** The cluster runs kube-proxy on this node, or is about to. */
  proxyScheduled: boolean;
  /** eBPF neither acts here nor is it wanted: what follows is a new switch. */
  leftEbpf: boolean;
}

/** Pure. What is not known now, as right after a restart, stays as it was. */
export function proxyWasAway(before: boolean, { ebpfServes, proxyScheduled, leftEbpf }: ProxySeen): boolean {
  if (leftEbpf) return false;
  return before || (ebpfServes && !proxyScheduled);
}

export function proxyAwayOnDisk(stateDirectory: string): ProxyAway {
  const file = join(stateDirectory, "kube-proxy-away");
  let away = existsSync(file);
  return {
    get: () => away,
    set(now) {
      if (now === away) return;
      if (now) {
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, "", { mode: 0o600 });
      } else rmSync(file, { force: true });
      away = now;
    },
  };
}
