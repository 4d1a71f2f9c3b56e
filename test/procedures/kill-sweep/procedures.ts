import type { ClusterOptions, LocalCluster } from "../../../src/local/cluster.ts";

/** A procedure that is killed again and again. */
export interface SweptProcedure {
  name: string;
  cluster: Omit<ClusterOptions, "name">;
  /** What must have happened before; the state after it is the initial one. Each is a command line of vendorctl, `-y` included by itself. */
  before?: readonly (readonly string[])[];
  /** What people had in the cluster. */
  seed?(cluster: LocalCluster): Promise<void>;
  /** The command line, without `-y` and the kubeconfig. */
  argv: readonly string[];
}

const PAPER = { kind: "generic", nodes: 2 };

const BY_HAND = ["--set", "spec.vendorNetwork.serviceProxyManagement=Disabled"];

/** One row per procedure of the product. A new procedure adds its row here and is swept. */
export const SWEPT: readonly SweptProcedure[] = [
  { name: "install", cluster: PAPER, argv: ["install"] },
  {
    name: "switch to eBPF",
    cluster: PAPER,
    before: [["install", "--dataplane", "standard"]],
    argv: ["switch", "--to", "BPF"],
  },
  { name: "switch to standard", cluster: PAPER, before: [["install"]], argv: ["switch", "--to", "standard"] },
  {
    name: "install where an address, a name server and a path are written",
    cluster: { kind: "eks", nodes: 2 },
    argv: ["install", "--flow-logs"],
  },
  {
    name: "switch from IPVS, with the proxy in a person's hands",
    cluster: { kind: "eks", nodes: 2, proxy: "ipvs" },
    before: [["install", "--dataplane", "standard"]],
    argv: ["switch", "--to", "BPF"],
  },
  {
    name: "switch to standard, with the proxy in a person's hands",
    cluster: PAPER,
    before: [["install", ...BY_HAND]],
    argv: ["switch", "--to", "standard"],
  },
  {
    name: "proxy disable",
    cluster: PAPER,
    before: [
      ["install", ...BY_HAND],
      ["proxy", "restore", "--leave-rules"],
    ],
    argv: ["proxy", "disable"],
  },
  { name: "uninstall", cluster: PAPER, before: [["install"]], argv: ["uninstall"] },
];
