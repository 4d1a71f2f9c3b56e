/** Everything a switchover reads from and does to the node, except the data planes themselves. */
import type { DataplaneState } from "../../api/dataplane.ts";
import type { DataplaneModel } from "../../calc/model.ts";
import type { BpfMap } from "../../kernel/bpf/bpf-port.ts";
import type { ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import type { NftPort } from "../../kernel/nft/nft-port.ts";
import { conntrackLookup } from "../ebpf/programs/fit-to-kernel.ts";
import { mapDirectory } from "../ebpf/programs/programs.ts";
import type { Affinity } from "../kube-proxy/proxy-affinities.ts";
import { type AffinityMaps, readAffinities, writeAffinities } from "./affinities.ts";
import {
  countConntrack,
  type ExportOptions,
  type ExportResult,
  exportConntrack,
  exportIdleConntrack,
} from "./export-conntrack.ts";
import { importNfConntrack } from "./import-nf-conntrack.ts";
import { createNatKeepalive, dropUnknownWhile, type NatKeepalive } from "./nat-keepalive.ts";
import { drainPinned, flipPinned, pinnedGeneration, pinnedMode, turnOffPinned } from "./node-mode.ts";

export interface SwitchoverKernel {
  keep: NatKeepalive;
  mode(): DataplaneState | undefined;
  flip(): void;
  drain(generation: number): void;
  turnOff(): void;
  /** Of the last drain; 0 before the first. */
  generation(): number;
  /** Whether our nftables filter is there. */
  filter(): Promise<boolean>;
  /** Imports nf_conntrack entries for the programs; how many. */
  importNfConntrack(): Promise<number>;
  exportConntrack(how: "replace" | "insert" | "idle", drain: Drain, model: DataplaneModel): Promise<ExportResult>;
  /** How many flows the programs still carry. */
  conntrackCount(): Promise<number>;
  /** Which clients stay with which backends, as the programs noted. */
  affinities(model: DataplaneModel): Promise<Affinity[]>;
  noteAffinities(affinities: readonly Affinity[]): Promise<void>;
  close(): void;
}

/** One switch back: its generation, and what was exported in it. */
export interface Drain {
  generation: number;
  known: Set<string>;
}

export interface SwitchoverKernelOptions {
  kernel: Kernel;
  pinDirectory: string;
  tables: { filter: string; keep: string };
  overlay: string;
  netns?: Netns;
}

export function switchoverKernel({
  kernel,
  pinDirectory,
  tables,
  overlay,
  netns,
}: SwitchoverKernelOptions): SwitchoverKernel {
  const { bpf } = kernel;
  const within = netns ? { netns } : {};
  const keep = createNatKeepalive({ kernel, table: tables.keep, overlay, ...within });
  const nft: NftPort = kernel.nft(netns);
  const conntrack: ConntrackPort = kernel.conntrack(netns);
  const netlink = kernel.netlink(netns);
  const ownAddresses = () => netlink.addresses().map(({ address }) => address.split("/")[0] as string);
  const withMap = async <T>(name: string, act: (map: BpfMap) => Promise<T>, otherwise: T): Promise<T> => {
    const directory = mapDirectory(pinDirectory);
    if (!bpf.pins(directory).includes(name)) return otherwise;
    const map = bpf.openMap(`${directory}/${name}`);
    try {
      return await act(map);
    } finally {
      map.close();
    }
  };
  const withAffinities = <T>(act: (maps: AffinityMaps) => Promise<T>, otherwise: T) =>
    withMap(
      "affinities",
      (affinities) =>
        withMap("frontends", (frontends) => act({ affinities, frontends, ownAddresses: ownAddresses() }), otherwise),
      otherwise,
    );
  return {
    keep,
    mode: () => pinnedMode(bpf, pinDirectory),
    flip: () => flipPinned(bpf, pinDirectory),
    drain: (generation) => drainPinned(bpf, pinDirectory, generation),
    turnOff: () => void turnOffPinned(bpf, pinDirectory),
    generation: () => pinnedGeneration(bpf, pinDirectory),
    filter: async () => (await nft.tables()).some(({ family, name }) => family === "inet" && name === tables.filter),
    importNfConntrack: () =>
      withMap(
        "old_flows",
        (oldFlows) => {
          const which = conntrackLookup(bpf).has_ct_lookup === 1 ? "unconnected" : "all";
          return importNfConntrack({ imported: oldFlows, conntrack, nodeAddresses: ownAddresses(), which });
        },
        0,
      ),
    exportConntrack: (how, drain, model) =>
      withMap(
        "flows",
        (flows) => {
          const pools = model.settings.pools.map(({ cidr }) => cidr);
          const hold: ExportOptions["hold"] = (act) => dropUnknownWhile(nft, tables.keep, act);
          const options: ExportOptions = { flows, conntrack, pools, hold, ...drain };
          return how === "idle" ? exportIdleConntrack(options) : exportConntrack(options, how === "replace");
        },
        { exported: 0, refused: 0, staying: 0 },
      ),
    conntrackCount: () => withMap("flows", countConntrack, 0),
    affinities: (model) => withAffinities((maps) => readAffinities(maps, model.services.values()), []),
    noteAffinities: (noted) => withAffinities(async (maps) => writeAffinities(maps, noted), undefined),
    close() {
      keep.close();
      nft.close();
      conntrack.close();
      netlink.close();
    },
  };
}
