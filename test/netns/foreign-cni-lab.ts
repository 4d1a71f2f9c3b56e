import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { vendorNames } from "../../src/api/names.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { installation } from "../../src/api/resources/installation.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { NODES, PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Link, NetlinkPort, Route } from "../../src/kernel/netlink/netlink-port.ts";
import type { Node } from "../../src/local/controllers/workload-types.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import type { RealCluster } from "./real-cluster.ts";

const PATIENCE_MS = 120_000;
/** Where the distribution has the plugins of the CNI project. */
const PLUGINS = "/usr/lib/cni";

export const whyNoPtp = existsSync(`${PLUGINS}/ptp`) ? undefined : `needs ${PLUGINS}/ptp`;

/** As a cloud's plugin names the host side; the one that made it has given it a name by chance. */
const renamer = (prefix: string) => `#!/bin/sh
config=$(cat)
[ "$CNI_COMMAND" = ADD ] || exit 0
made=$(printf '%s' "$config" | grep -o '"veth[0-9a-f]*"' | head -n 1 | tr -d '"')
ip link set "$made" name "${prefix}$(printf '%s' "$CNI_CONTAINERID" | cut -c 1-11)" || exit 1
printf '%s' "$config" | sed 's/.*"prevResult": *//; s/}$//'
`;

/** Each node gets the plugins `ptp` and `host-local`, as they are, and interfaces named by its prefix. */
export async function installPtp(
  { client, runtime }: RealCluster,
  prefixes: ReadonlyMap<string, string>,
): Promise<void> {
  for (const { metadata, spec } of (await client.list<Node>(NODES)).items) {
    const machine = runtime.machine(metadata.name);
    const bin = machine.path("/opt/cni/bin");
    mkdirSync(bin, { recursive: true });
    for (const plugin of ["ptp", "host-local"]) await machine.run(["cp", `${PLUGINS}/${plugin}`, "/opt/cni/bin/"]);
    writeFileSync(`${bin}/rename`, renamer(prefixes.get(metadata.name) as string), { mode: 0o755 });
    mkdirSync(machine.path("/etc/cni/net.d"), { recursive: true });
    const ipam = { type: "host-local", ranges: [[{ subnet: spec?.podCIDR }]], routes: [{ dst: "0.0.0.0/0" }] };
    const plugins = [{ type: "ptp", ipMasq: false, ipam }, { type: "rename" }];
    const list = { cniVersion: "0.4.0", name: "cloud", plugins };
    writeFileSync(machine.path("/etc/cni/net.d/10-cloud.conflist"), JSON.stringify(list));
  }
}

/** One node's pods are named by another plugin than the rest's. */
export async function setPrefixOfNode({ client }: RealCluster, node: string, interfacePrefix: string): Promise<void> {
  const { stored } = placesOf(dataplaneConfiguration, vendorNames);
  await client.create(stored, {
    apiVersion: `${stored.group}/${stored.version}`,
    kind: stored.kind,
    metadata: { name: `node.${node}` },
    spec: { interfacePrefix },
  });
}

export interface NodeNet {
  links: Link[];
  routes: Route[];
}

export function netOf({ runtime }: RealCluster, node: string): NodeNet {
  const netlink: NetlinkPort = realKernel().netlink(runtime.machine(node).netns);
  try {
    return { links: netlink.links(), routes: netlink.routes() };
  } finally {
    netlink.close();
  }
}

/** And no service proxy is left, so that Services work by the programs or not at all. */
export async function switchToEbpf({ client, runtime, nodeNames }: RealCluster): Promise<void> {
  const { stored } = placesOf(installation, vendorNames);
  const spec = {
    vendorNetwork: { linuxDataplane: "BPF", hostPorts: null, serviceProxyManagement: "Enabled" },
    // One after the other would take longer, and proves nothing more here.
    nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: nodeNames.length } },
  };
  await client.patch(stored, { name: vendorNames.singleton }, { type: "merge", patch: { spec } });
  const proxies = async () => (await client.list(PODS, { labelSelector: "k8s-app=kube-proxy" })).items;
  await eventually(proxies, (left) => left.length === 0, PATIENCE_MS);
  const rules = async () => Promise.all(nodeNames.map((node) => runtime.machine(node).run(["nft", "list", "ruleset"])));
  await eventually(rules, (found) => found.every(({ out }) => !out.includes("KUBE-SVC")), PATIENCE_MS);
}
