import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { Random } from "./random.ts";

const { group, version } = vendorNames.groups.stored;
const NODES = ["node-a", "node-b", "node-c"];

/** Pools, blocks, claims and what nodes say of themselves: all that routes are made of. */
export function routingObjects(random: Random): KubeObject[] {
  return [...pools(random), ...random.some(0, 4, (index) => block(random, index)), ...nodes(random), ...agents(random)];
}

function stored(kind: string, name: string, spec: object): KubeObject {
  return { apiVersion: `${group}/${version}`, kind, metadata: { name }, spec };
}

function pools(random: Random): KubeObject[] {
  const spec = () => ({
    ...random.maybe(70, "vxlanMode", () => random.of(["Always", "CrossSubnet", "Never"])),
    ...random.maybe(60, "natOutgoing", () => random.chance(50)),
    ...random.maybe(10, "ipipMode", () => "Always"),
  });
  return [
    ...(random.chance(90) ? [stored("IPPool", "v4", { cidr: "10.0.0.0/16", ...spec() })] : []),
    ...(random.chance(40) ? [stored("IPPool", "v6", { cidr: "fd00::/64", ...spec() })] : []),
    ...(random.chance(20) ? [stored("IPPool", "tiny", { cidr: "10.9.0.0/26", ...spec() })] : []),
  ];
}

function block(random: Random, index: number): KubeObject {
  const cidr = random.of([`10.0.${index}.0/26`, "10.9.0.0/26", `fd00::${index}00/122`]);
  const home = random.of(NODES);
  if (random.chance(25)) {
    return stored("BlockAffinity", `claim${index}`, {
      state: random.of(["confirmed", "pending"]),
      node: home,
      cidr,
      type: "host",
    });
  }
  const attributes = random.some(0, 3, (number) => ({
    handle_id: `h${number}`,
    secondary: random.of([
      { node: home, pod: "p", namespace: "blue" },
      { node: random.of(NODES), pod: "p", namespace: "blue" },
      { node: random.of(NODES), type: "vxlanTunnelAddress" },
    ]),
  }));
  return stored("IPAMBlock", `block${index}`, {
    cidr,
    ...random.maybe(90, "affinity", () => `host:${home}`),
    allocations: [...attributes.keys(), null],
    unallocated: [],
    attributes,
  });
}

function nodes(random: Random): KubeObject[] {
  return NODES.filter(() => random.chance(85)).map((name) => {
    const last = 1 + NODES.indexOf(name);
    return {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name,
        annotations: {
          ...random.maybe(70, "vendor.io/ipv4-address", () => `172.16.${random.below(2)}.${last}/24`),
          ...random.maybe(30, "vendor.io/ipv6-address", () => `fd16::${last}/64`),
          ...random.maybe(30, "vendor.io/vxlan-mac", () => "66:00:00:00:00:01"),
          ...random.maybe(30, "vendor.io/ipv4-vxlan-address", () => `10.0.200.${last}`),
          ...random.maybe(40, "vendor.io/interfaces", () =>
            JSON.stringify([{ name: "eth0", addresses: [`172.20.0.${last}`] }]),
          ),
        },
      },
      status: { addresses: [{ type: "InternalIP", address: `172.16.0.${last}` }] },
    } as KubeObject;
  });
}

function agents(random: Random): KubeObject[] {
  return NODES.filter(() => random.chance(60)).map((nodeName) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `agent-${nodeName}`,
      namespace: vendorNames.namespaces.system,
      annotations: { "vendor.io/dataplane": random.of(["BPF", "Nftables"]) },
    },
    spec: { nodeName, hostNetwork: true },
    status: { phase: "Running" },
  }));
}
