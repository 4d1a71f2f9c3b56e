import type { Noun } from "../../api/names.ts";
import type { Consequence } from "../../api/tables/fate.ts";
import type { Since } from "../../api/tables/version.ts";

/** A kind that older releases had. */
export interface RemovedKind extends Consequence {
  kind: string;
  plural: string;
  /** Which of the service's groups it is of, or a group that is not the service's. */
  group: "stored" | "operator" | { name: string; version: string };
  namespaced?: true;
  since?: Since;
}

const NOT_ENFORCED = {
  fate: "lost",
  why: "This release does not enforce policies of this kind: what they deny is allowed.",
  todo: "Write them as GlobalNetworkPolicy in a tier of their own first.",
} as const;
const NO_SUCH_PROGRAM = (what: string) =>
  ({ fate: "lost", why: `This release has no ${what}.`, todo: "Delete it, or accept the loss." }) as const;

const ADMIN_POLICIES = { name: "policy.networking.k8s.io", version: "v1alpha1" } as const;

/** Kinds of which objects may be stored, and that no program of this release reads. */
export const REMOVED_KINDS: readonly RemovedKind[] = [
  {
    kind: "AdminNetworkPolicy",
    plural: "adminnetworkpolicies",
    group: ADMIN_POLICIES,
    since: "v3.29",
    ...NOT_ENFORCED,
  },
  {
    ...{ kind: "BaselineAdminNetworkPolicy", plural: "baselineadminnetworkpolicies", group: ADMIN_POLICIES },
    ...{ since: "v3.30", ...NOT_ENFORCED },
  },
  {
    ...{ kind: "ImageSet", plural: "imagesets", group: "operator", fate: "lost" },
    why: "This release takes images by tag: digests of an image set are not used.",
    todo: "Give your registry in the Installation, and pin digests there.",
  },
  {
    kind: "GatewayAPI",
    plural: "gatewayapis",
    group: "operator",
    since: "v3.30",
    ...NO_SUCH_PROGRAM("ingress gateway"),
  },
  {
    ...{ kind: "ManagementClusterConnection", plural: "managementclusterconnections", group: "operator" },
    ...{ since: "v3.20", ...NO_SUCH_PROGRAM("connection to a hosted console") },
  },
];

/** A kind that programs of this release read only where the Installation enables BGP. Older releases did unless it was disabled. */
export interface BgpKind extends Consequence {
  noun: Noun;
  /** Fields that mean nothing is lost if no other is set. */
  idle?: readonly string[];
}

const WITHOUT_BGP = {
  fate: "lost",
  why: "Nodes of this release speak BGP only if the Installation enables it: otherwise routers and other nodes learn no routes from them.",
  todo: "Set spec.vendorNetwork.bgp of the Installation to Enabled, or use VXLAN between nodes and static routes towards routers.",
} as const;

export const BGP_KINDS: readonly BgpKind[] = [
  { noun: "bgpPeer", ...WITHOUT_BGP },
  { noun: "bgpConfiguration", ...WITHOUT_BGP, idle: ["logSeverityScreen", "nodeToNodeMeshEnabled", "asNumber"] },
  { noun: "bgpFilter", ...WITHOUT_BGP },
];
