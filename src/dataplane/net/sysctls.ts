import { readFileSync, writeFileSync } from "node:fs";
import type { Netns, NetnsPort } from "../../kernel/netns/netns-port.ts";

/** Settings of a network namespace, by their path below `net/`: `ipv4/ip_forward`. */
export interface Sysctls {
  /** Undefined where the kernel has no such setting. */
  read(path: string): string | undefined;
  /** Whether there is such a setting. */
  write(path: string, value: string): boolean;
}

/** The kernel shows the settings of the namespace the reading thread is in. */
export function realSysctls(port: NetnsPort, netns?: Netns): Sysctls {
  const inside = <T extends string | boolean | undefined>(act: () => T): T => {
    let result: T | undefined;
    const keep = () => {
      result = act();
    };
    if (netns) port.run(netns, keep);
    else keep();
    return result as T;
  };
  return {
    read: (path) => inside(() => unlessAbsent(() => readFileSync(`/proc/sys/net/${path}`, "utf8").trim())),
    write: (path, value) =>
      inside(() => unlessAbsent(() => writeFileSync(`/proc/sys/net/${path}`, value) ?? true) ?? false),
  };
}

function unlessAbsent<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** What a node must do to carry packets of pods. */
export function nodeSysctls(ipv6: boolean): [path: string, value: string][] {
  return [["ipv4/ip_forward", "1"], ...(ipv6 ? [["ipv6/conf/all/forwarding", "1"] as [string, string]] : [])];
}

/** Whether the kernel counts what connections carry. */
export const COUNTING = "netfilter/nf_conntrack_acct";

/**
 * Only connections that begin after it are counted: set when the data plane starts, and not when flow logs are switched on. And the kernel notes when
 * each began: by that, one is not taken for the one before that had the same addresses and ports.
 */
export function countingSysctls(): [path: string, value: string][] {
  return [
    [COUNTING, "1"],
    ["netfilter/nf_conntrack_timestamp", "1"],
  ];
}

/**
 * At a pod's interface: packets from other addresses are dropped; the node answers ARP for the gateway, which is no real address, without delay;
 * router advertisements of a pod are ignored. With host ports, the node's own processes reach it from 127.0.0.1; `pod-loopback` of nftables keeps
 * the pod from the other direction.
 */
export function podSysctls(
  interfaceName: string,
  { ipv6, hasHostPorts }: { ipv6: boolean; hasHostPorts: boolean },
): [path: string, value: string][] {
  const v4 = `ipv4/conf/${interfaceName}`;
  const v6 = `ipv6/conf/${interfaceName}`;
  return [
    [`${v4}/rp_filter`, "1"],
    [`${v4}/proxy_arp`, "1"],
    [`${v4}/forwarding`, "1"],
    ...(hasHostPorts ? [[`${v4}/route_localnet`, "1"] as [string, string]] : []),
    [`ipv4/neigh/${interfaceName}/proxy_delay`, "0"],
    ...(ipv6
      ? ([
          [`${v6}/disable_ipv6`, "0"],
          [`${v6}/accept_ra`, "0"],
          [`${v6}/forwarding`, "1"],
          [`${v6}/proxy_ndp`, "1"],
        ] as [string, string][])
      : []),
  ];
}

/**
 * While a pool changes its tunnel, a node answers through the one that it knows to be the pool's, and both are right: reverse paths are not
 * checked strictly there. The kernel takes the larger value, of all devices or of this one; one that checks nothing stays so.
 */
export function settleTunnelSysctls(sysctls: Sysctls, device: string): void {
  const path = `ipv4/conf/${device}/rp_filter`;
  const values = [sysctls.read("ipv4/conf/all/rp_filter"), sysctls.read(path)];
  if (values.includes("1") && !values.includes("2")) sysctls.write(path, "2");
}

/** Writes only what differs: some settings do something when they are written. */
export function settleSysctls(sysctls: Sysctls, wanted: readonly (readonly [string, string])[]): void {
  for (const [path, value] of wanted) {
    const found = sysctls.read(path);
    if (found !== undefined && found !== value) sysctls.write(path, value);
  }
}
