import { vendorNames } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { platformOf } from "../../operator/render/platform.ts";
import type { OldRelease } from "../../releases/old-release.ts";
import { addressObjects, type Pool, tunnelAddresses } from "./address-objects.ts";
import type { InstalledNode } from "./installed-node.ts";
import { storedPolicyName, v3Object } from "./v3-object.ts";

const { singleton, labels, hostEndpoints, variant } = vendorNames;
/** A team's namespace, whose policy the tests of owner references are about. */
export const TEAM_NAMESPACE = "shop";
export const TEAM_POLICY = "allow-web";
export const GLOBAL_POLICY = "deny-instance-metadata";

export interface V3Inputs {
  release: OldRelease;
  kind: ClusterKind;
  nodes: readonly InstalledNode[];
  pool: Pool | undefined;
  by: "operator" | "manifest";
  autoHostEndpoints: boolean;
  cameFromBeforeV314: boolean;
}

/** What an older version and its users kept as v3 resources. */
export function v3Objects(inputs: V3Inputs): KubeObject[] {
  const { release, nodes, pool } = inputs;
  return [
    ...settings(inputs),
    ...(release.hasSince("v3.29") ? tiers() : []),
    ...(pool ? addressObjects(release, pool, nodes) : []),
    ...(inputs.autoHostEndpoints ? nodes.map((node, index) => autoHostEndpoint(node, index, pool)) : []),
    ...ownHostEndpoints(nodes),
    ...policies(inputs),
    ...removedSince(inputs),
  ];
}

/** What this release reads only with BGP, and what it reads in another way: nothing is lost of either. */
function removedSince({ release, by }: V3Inputs): KubeObject[] {
  const apiVersion = groupVersion(vendorNames.groups.stored);
  const mesh = { logSeverityScreen: "Info", nodeToNodeMeshEnabled: true };
  const staged = { tier: "default", selector: "app == 'web'", types: ["Egress"] };
  return [
    ...(by === "manifest" ? [{ apiVersion, kind: "BGPConfiguration", metadata: { name: singleton }, spec: mesh }] : []),
    ...(release.hasSince("v3.30")
      ? [
          {
            ...{ apiVersion, kind: "StagedNetworkPolicy", spec: staged },
            metadata: { name: storedPolicyName("web-egress"), namespace: TEAM_NAMESPACE },
          },
        ]
      : []),
  ];
}

function settings({ release, kind, by, autoHostEndpoints }: V3Inputs): KubeObject[] {
  return [
    v3Object("clusterInformation", singleton, {
      clusterGUID: "0b8f6e5d4c3b2a190807f6e5d4c3b2a1",
      clusterType: ["k8s", ...(by === "operator" ? ["operator"] : []), "kdd"].join(","),
      vendorVersion: release.tag,
      variant,
      datastoreReady: true,
    }),
    v3Object("dataplaneConfiguration", singleton, {
      bpfEnabled: false,
      healthPort: platformOf(kind).healthPort,
      logSeverityScreen: "Info",
      reportingInterval: "0s",
      vxlanVNI: platformOf(kind).vxlan.vni,
    }),
    v3Object("kubeControllersConfiguration", singleton, {
      healthChecks: "Enabled",
      logSeverityScreen: "Info",
      controllers: {
        node: { syncLabels: "Enabled", hostEndpoint: { autoCreate: autoHostEndpoints ? "Enabled" : "Disabled" } },
      },
    }),
  ];
}

function tiers(): KubeObject[] {
  return [
    v3Object("tier", "adminnetworkpolicy", { order: 1000, defaultAction: "Pass" }),
    v3Object("tier", "default", { order: 1_000_000, defaultAction: "Deny" }),
    v3Object("tier", "baselineadminnetworkpolicy", { order: 10_000_000, defaultAction: "Pass" }),
  ];
}

/** Made by the controllers: the label says so, and the name ends as theirs do. */
function autoHostEndpoint(node: InstalledNode, index: number, pool: Pool | undefined): KubeObject {
  const spec = {
    node: node.name,
    interfaceName: "*",
    expectedIPs: [...node.internalIPs, ...(pool ? tunnelAddresses(node, pool, index) : [])],
    profiles: [hostEndpoints.allowAllProfile],
  };
  const { key, value } = labels.createdBy;
  return v3Object("hostEndpoint", `${node.name}${hostEndpoints.suffix}`, spec, {
    labels: { ...node.labels, [key]: value },
  });
}

/**
 * Made by people: on the first node one for all interfaces, with labels the node does not have, which is what the migration to
 * automatic endpoints moves and deletes; on the last node one for a single interface, which it must leave alone.
 */
function ownHostEndpoints(nodes: readonly InstalledNode[]): KubeObject[] {
  const [first, last] = [nodes[0], nodes.at(-1)];
  if (!first || !last) return [];
  return [
    v3Object(
      "hostEndpoint",
      `${first.name}-all-interfaces`,
      { node: first.name, interfaceName: "*", expectedIPs: first.internalIPs },
      { labels: { environment: "production", "host-endpoint": "ingress" } },
    ),
    v3Object(
      "hostEndpoint",
      `${last.name}-eth1`,
      { node: last.name, interfaceName: "eth1", ports: [{ name: "backup", port: 8730, protocol: "TCP" }] },
      { labels: { environment: "production", "host-endpoint": "backup" } },
    ),
  ];
}

function policies({ release, cameFromBeforeV314 }: V3Inputs): KubeObject[] {
  const tier = release.hasSince("v3.29") ? { tier: "default" } : {};
  const allow = [{ action: "Allow" }];
  return [
    v3Object("globalNetworkPolicy", storedPolicyName(GLOBAL_POLICY), {
      ...tier,
      order: 100,
      selector: "all()",
      types: ["Egress"],
      egress: [{ action: "Deny", destination: { nets: ["169.254.169.254/32"] } }, ...allow],
    }),
    v3Object(
      "networkPolicy",
      storedPolicyName(TEAM_POLICY),
      {
        ...tier,
        order: 200,
        selector: "app == 'web'",
        types: ["Ingress"],
        ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: [80, 443] } }],
      },
      { namespace: TEAM_NAMESPACE },
    ),
    ...(cameFromBeforeV314 ? [temporaryPolicy(tier)] : []),
  ];
}

/** Put there by hand before the upgrade to v3.14, so that host endpoints would not cut anything off. */
function temporaryPolicy(tier: object): KubeObject {
  const logged = [{ action: "Log" }, { action: "Allow" }];
  return v3Object("globalNetworkPolicy", storedPolicyName(hostEndpoints.temporaryUpgradePolicy), {
    ...tier,
    selector: "has(host-endpoint)",
    types: ["Ingress", "Egress"],
    ingress: logged,
    egress: logged,
  });
}
