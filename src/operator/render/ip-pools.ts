import { groupVersion, type KubeObject } from "../../api/object.ts";
import type { IPPool } from "../../api/resources/ip-pool.ts";
import type { EffectiveInstallation, RenderInputs } from "./inputs.ts";

type Pool = NonNullable<NonNullable<EffectiveInstallation["vendorNetwork"]>["ipPools"]>[number];
type Modes = Pick<IPPool["spec"], "vxlanMode" | "ipipMode">;

const MODES: Record<NonNullable<Pool["encapsulation"]>, Modes> = {
  VXLAN: { vxlanMode: "Always", ipipMode: "Never" },
  VXLANCrossSubnet: { vxlanMode: "CrossSubnet", ipipMode: "Never" },
  IPIP: { vxlanMode: "Never", ipipMode: "Always" },
  IPIPCrossSubnet: { vxlanMode: "Never", ipipMode: "CrossSubnet" },
  None: { vxlanMode: "Never", ipipMode: "Never" },
};

/** The installation's pools as the stored kind: they must exist before there is a v3 API to make them through. */
export function ipPools({ installation, names }: Pick<RenderInputs, "installation" | "names">): KubeObject[] {
  const pools = installation.vendorNetwork?.ipPools ?? [];
  return pools.map((pool) => ({
    apiVersion: groupVersion(names.groups.stored),
    kind: names.kinds.ipPool.kind,
    // Every effective pool has a name; without one, the prefix is the key.
    metadata: { name: pool.name ?? pool.cidr.replace(/[^a-z0-9]+/g, "-") },
    spec: poolSpec(pool),
  }));
}

function poolSpec(pool: Pool): IPPool["spec"] {
  const { cidr, encapsulation = "None", blockSize, natOutgoing, nodeSelector, allowedUses, assignmentMode } = pool;
  return {
    cidr,
    ...MODES[encapsulation],
    natOutgoing: natOutgoing === "Enabled",
    disabled: pool.disableNewAllocations === true,
    ...(blockSize === undefined ? {} : { blockSize }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(allowedUses === undefined ? {} : { allowedUses }),
    ...(assignmentMode === undefined ? {} : { assignmentMode }),
  };
}
