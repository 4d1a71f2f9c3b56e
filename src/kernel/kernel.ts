/**
 * The front door: everything the house may ask of Linux, as ports, on the real kernel; `fake/fake-kernel.ts` has the same ports in memory, for tests. What is of a network namespace is opened
 * for one, and without one for the namespace this thread is in.
 */
import { realBpf } from "./bpf.ts";
import type { BpfPort } from "./bpf-port.ts";
import { type CgroupPort, realCgroup } from "./cgroup.ts";
import type { ConntrackPort } from "./conntrack-port.ts";
import { realConntrack } from "./ctnetlink.ts";
import { type KernelFeatures, probeFeatures } from "./features.ts";
import { realMounts } from "./mounts.ts";
import type { MountsPort } from "./mounts-port.ts";
import type { NetlinkPort } from "./netlink-port.ts";
import { realNetns } from "./netns.ts";
import type { Netns, NetnsPort } from "./netns-port.ts";
import { realNft } from "./nft.ts";
import type { NftPort } from "./nft-port.ts";
import { type BpfObject, type LoadOptions, loadObject } from "./object.ts";
import { realNetlink } from "./real-netlink.ts";
import { realSockets } from "./sockdiag.ts";
import type { SocketsPort } from "./sockets-port.ts";

export interface Kernel {
  readonly bpf: BpfPort;
  readonly netns: NetnsPort;
  readonly mounts: MountsPort;
  readonly cgroup: CgroupPort;
  netlink(netns?: Netns): NetlinkPort;
  nft(netns?: Netns): NftPort;
  conntrack(netns?: Netns): ConntrackPort;
  sockets(netns?: Netns): SocketsPort;
  /** What clang compiled, as bytes. */
  loadObject(bytes: Uint8Array, options?: LoadOptions): BpfObject;
  features(): Promise<KernelFeatures>;
}

export function realKernel(): Kernel {
  const mounts = realMounts();
  const bpf = realBpf();
  return {
    bpf,
    netns: realNetns(),
    mounts,
    cgroup: realCgroup(mounts, bpf),
    netlink: realNetlink,
    nft: realNft,
    conntrack: realConntrack,
    sockets: realSockets,
    loadObject: (bytes, options) => loadObject(bpf, bytes, options),
    features: () => probeFeatures(bpf),
  };
}
