/**
 * The entry point: everything other modules use of Linux, as ports, on the real kernel; `fake/fake-kernel.ts` has the same ports in memory, for tests. What is of a network namespace is opened
 * for one, and without one for the namespace this thread is in.
 */
import { realBpf } from "./bpf/bpf.ts";
import type { BpfPort } from "./bpf/bpf-port.ts";
import { type CgroupPort, realCgroup } from "./bpf/cgroup.ts";
import { type KernelFeatures, probeFeatures } from "./bpf/features.ts";
import { type BpfObject, type LoadOptions, loadObject } from "./bpf/object.ts";
import type { ConntrackPort } from "./conntrack/conntrack-port.ts";
import { realConntrack } from "./conntrack/ctnetlink.ts";
import { realSockets } from "./conntrack/sockdiag.ts";
import type { SocketsPort } from "./conntrack/sockets-port.ts";
import { realFrames } from "./frames/frames.ts";
import type { FramesPort } from "./frames/frames-port.ts";
import type { NetlinkPort } from "./netlink/netlink-port.ts";
import { realNetlink } from "./netlink/real-netlink.ts";
import { realMounts } from "./netns/mounts.ts";
import type { MountsPort } from "./netns/mounts-port.ts";
import { realNetns } from "./netns/netns.ts";
import type { Netns, NetnsPort } from "./netns/netns-port.ts";
import { realNft } from "./nft/nft.ts";
import type { NftPort } from "./nft/nft-port.ts";

export interface Kernel {
  readonly bpf: BpfPort;
  readonly netns: NetnsPort;
  readonly mounts: MountsPort;
  readonly cgroup: CgroupPort;
  netlink(netns?: Netns): NetlinkPort;
  nft(netns?: Netns): NftPort;
  conntrack(netns?: Netns): ConntrackPort;
  sockets(netns?: Netns): SocketsPort;
  frames(netns?: Netns): FramesPort;
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
    frames: realFrames,
    loadObject: (bytes, options) => loadObject(bpf, bytes, options),
    features: () => probeFeatures(bpf),
  };
}
