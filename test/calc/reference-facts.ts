import { BlockList, isIPv4 } from "node:net";
import type { KubeObject } from "../../src/api/object.ts";
import { matchesExpression, parseSelectorExpression } from "../../src/api/schema/selector-expression.ts";

type Json = Record<string, unknown>;
type Labels = Record<string, string>;

/** Something with labels that has addresses. */
export interface ReferenceEndpoint {
  namespace?: string;
  account?: string;
  labels: Labels;
  nets: string[];
  ports: { name: string; protocol: number; port: number }[];
}

const PROTOCOLS: Record<string, number> = { ICMP: 1, TCP: 6, UDP: 17, ICMPv6: 58, SCTP: 132, UDPLite: 136 };
const FAILSAFE = {
  ingress: ["UDP 68", "TCP 22", "TCP 179", "TCP 2379", "TCP 2380", "TCP 5473", "TCP 6443", "TCP 6666", "TCP 6667"],
  egress: ["UDP 53", "UDP 67", "TCP 179", "TCP 2379", "TCP 2380", "TCP 5473", "TCP 6443", "TCP 6666", "TCP 6667"],
};

export function protocolOf(value: unknown): number | undefined {
  return value === undefined ? undefined : (PROTOCOLS[value as string] ?? Number(value));
}

/** Prefixes are few, and making one ready to be asked is dear. */
const blocks = new Map<string, BlockList>();

/** Answers plain questions about a list of objects by walking through it. */
export class ReferenceFacts {
  readonly #objects: readonly KubeObject[];
  #things: ReferenceEndpoint[] | undefined;

  constructor(objects: readonly KubeObject[]) {
    this.#objects = objects;
  }

  /** Whether labels match a selector's text; without text nothing is asked. */
  matches(text: unknown, labels: Labels): boolean {
    const parsed = parseSelectorExpression((text as string | undefined) ?? "");
    return "expression" in parsed && matchesExpression(parsed.expression, labels);
  }

  inNet(address: string, net: string): boolean {
    const [base = "", length] = net.split("/");
    if (isIPv4(base) !== isIPv4(address)) return false;
    const family = isIPv4(base) ? "ipv4" : "ipv6";
    const known = blocks.get(net);
    if (known) return known.check(address, family);
    const block = new BlockList();
    block.addSubnet(base, Number(length ?? (family === "ipv4" ? 32 : 128)), family);
    blocks.set(net, block);
    return block.check(address, family);
  }

  labeledEndpoints(): ReferenceEndpoint[] {
    this.#things ??= [
      ...this.#of("Pod").flatMap((pod) => this.#podThing(pod) ?? []),
      ...[...this.#of("NetworkSet"), ...this.#of("GlobalNetworkSet")].map(({ metadata, spec }) => ({
        namespace: metadata.namespace,
        labels: { ...metadata.labels, ...this.#namespaceLabels(metadata.namespace) },
        nets: (spec["nets"] ?? []) as string[],
        ports: [],
      })),
      ...this.#of("HostEndpoint").map(({ metadata }) => this.labeledHostEndpoint(metadata.name)),
    ];
    return this.#things;
  }

  pod(id: string): ReferenceEndpoint | undefined {
    const found = this.#of("Pod").find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === id);
    return found && this.#podThing(found);
  }

  namespaceExists(name: string): boolean {
    return this.#of("Namespace").some(({ metadata }) => metadata.name === name);
  }

  /** Labels selectors of namespaces are matched against. */
  labelsOfNamespace(name: string): Labels {
    const found = this.#of("Namespace").find(({ metadata }) => metadata.name === name);
    return found ? { ...found.metadata.labels, "vendor.io/name": name } : {};
  }

  accountExists(namespace: string, name: string): boolean {
    return this.#of("ServiceAccount").some(
      ({ metadata }) => metadata.namespace === namespace && metadata.name === name,
    );
  }

  labelsOfAccount(namespace: string, name: string): Labels {
    const found = this.#of("ServiceAccount").find(
      ({ metadata }) => metadata.namespace === namespace && metadata.name === name,
    );
    return found ? { ...found.metadata.labels, "vendor.io/name": name } : {};
  }

  hostEndpoints(node: string): { name: string; spec: Json }[] {
    return this.#of("HostEndpoint")
      .filter(({ spec }) => spec["node"] === node)
      .map(({ metadata, spec }) => ({ name: metadata.name, spec }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  labeledHostEndpoint(name: string): ReferenceEndpoint {
    const { metadata, spec } = this.#of("HostEndpoint").find((each) => each.metadata.name === name)!;
    const labels: Labels = {};
    for (const profile of [...((spec["profiles"] ?? []) as string[])].reverse()) {
      Object.assign(labels, this.profile(profile)?.["labelsToApply"]);
    }
    const ports = (spec["ports"] ?? []) as { name: string; port: number; protocol: string }[];
    return {
      labels: { ...labels, ...metadata.labels },
      nets: (spec["expectedIPs"] ?? []) as string[],
      ports: ports.map((port) => ({ ...port, protocol: protocolOf(port.protocol)! })),
    };
  }

  profile(name: string): Json | undefined {
    return this.#of("Profile").find(({ metadata }) => metadata.name === name)?.spec;
  }

  tier(name: string): { order: number; defaultAction: string } {
    if (name === "default") return { order: 1_000_000, defaultAction: "Deny" };
    const spec = this.#of("Tier").find(({ metadata }) => metadata.name === name)?.spec;
    return { order: 1_000_000, defaultAction: "Deny", ...spec };
  }

  configuration(node: string): Json {
    const named = (name: string) => this.#of("DataplaneConfiguration").find(({ metadata }) => metadata.name === name);
    return { ...named("default")?.spec, ...named(`node.${node}`)?.spec };
  }

  failsafe(node: string, direction: "ingress" | "egress"): { protocol: number; port: number; net?: string }[] {
    const field = direction === "ingress" ? "failsafeInboundHostPorts" : "failsafeOutboundHostPorts";
    const given = this.configuration(node)[field] as { protocol?: string; port: number; net?: string }[] | undefined;
    if (given) return given.map((open) => ({ ...open, protocol: protocolOf(open.protocol ?? "TCP")! }));
    return FAILSAFE[direction].map((text) => {
      const [protocol, port] = text.split(" ");
      return { protocol: protocolOf(protocol)!, port: Number(port) };
    });
  }

  /** Every policy that selects the endpoint, of every kind. */
  policiesFor(thing: ReferenceEndpoint): { kind: string; name: string; namespace?: string; spec: Json }[] {
    const ours = [...this.#of("NetworkPolicy"), ...this.#of("GlobalNetworkPolicy")].filter(
      ({ apiVersion, metadata, spec }) => {
        if (apiVersion.startsWith("networking.k8s.io") || !this.matches(spec["selector"], thing.labels)) return false;
        if (metadata.namespace !== undefined && metadata.namespace !== thing.namespace) return false;
        return (
          this.namespaceMatches(spec["namespaceSelector"], thing) &&
          this.accountMatches(spec["serviceAccountSelector"], thing)
        );
      },
    );
    const kubernetes = this.#of("NetworkPolicy").filter(
      ({ apiVersion, metadata, spec }) =>
        apiVersion.startsWith("networking.k8s.io") &&
        thing.account !== undefined &&
        metadata.namespace === thing.namespace &&
        matchesLabelSelector(spec["podSelector"] as Json | undefined, thing.labels),
    );
    const as =
      (kind: string) =>
      ({ metadata, spec }: Kept) => ({ kind, name: metadata.name, namespace: metadata.namespace, spec });
    return [...ours.map(as("ours")), ...kubernetes.map(as("kubernetes"))];
  }

  /** What is asked of a thing's namespace; a thing without one matches `global()` alone. */
  namespaceMatches(selector: unknown, thing: ReferenceEndpoint): boolean {
    if (selector === undefined) return true;
    if (selector === "global()") return thing.namespace === undefined;
    return thing.namespace !== undefined && this.matches(selector, this.labelsOfNamespace(thing.namespace));
  }

  accountMatches(selector: unknown, thing: ReferenceEndpoint): boolean {
    if (selector === undefined) return true;
    return thing.account !== undefined && this.matches(selector, this.labelsOfAccount(thing.namespace!, thing.account));
  }

  /** Backends of a service. */
  backends(namespace: string, name: string): { address: string; protocol: number; port: number | undefined }[] {
    const slices = this.#of("EndpointSlice").filter(
      ({ metadata }) => metadata.namespace === namespace && metadata.labels?.["kubernetes.io/service-name"] === name,
    );
    return slices.flatMap((slice) => {
      const { endpoints, ports } = slice as unknown as {
        endpoints: { addresses: string[] }[];
        ports: { port: number; protocol?: string }[];
      };
      return endpoints.flatMap(({ addresses }) =>
        addresses.flatMap((address) => [
          { address, protocol: 0, port: undefined },
          ...ports.map(({ port, protocol }) => ({ address, protocol: protocolOf(protocol ?? "TCP")!, port })),
        ]),
      );
    });
  }

  #podThing(pod: Kept): ReferenceEndpoint | undefined {
    const { metadata, spec, status } = pod;
    if (spec["hostNetwork"] || status["phase"] === "Succeeded" || status["phase"] === "Failed") return undefined;
    const namespace = metadata.namespace!;
    const account = (spec["serviceAccountName"] as string | undefined) ?? "default";
    const containers = spec["containers"] as { ports: { name: string; containerPort: number; protocol?: string }[] }[];
    return {
      namespace,
      account,
      labels: { ...metadata.labels, ...this.#namespaceLabels(namespace) },
      nets: (status["podIPs"] as { ip: string }[]).map(({ ip }) => ip),
      ports: containers.flatMap(({ ports }) =>
        ports.map(({ name, containerPort, protocol }) => ({
          name,
          port: containerPort,
          protocol: protocolOf(protocol ?? "TCP")!,
        })),
      ),
    };
  }

  #namespaceLabels(namespace: string | undefined): Labels {
    return namespace === undefined ? {} : { "vendor.io/namespace": namespace };
  }

  #of(kind: string): Kept[] {
    return this.#objects.filter((object) => object.kind === kind) as unknown as Kept[];
  }
}

type Kept = KubeObject & { spec: Json; status: Json };

export function matchesLabelSelector(selector: Json | undefined, labels: Labels): boolean {
  const wanted = (selector?.["matchLabels"] ?? {}) as Labels;
  const expressions = (selector?.["matchExpressions"] ?? []) as { key: string; operator: string; values?: string[] }[];
  return (
    Object.entries(wanted).every(([key, value]) => labels[key] === value) &&
    expressions.every(({ key, operator, values = [] }) => {
      const value = labels[key];
      if (operator === "Exists") return value !== undefined;
      if (operator === "DoesNotExist") return value === undefined;
      const listed = value !== undefined && values.includes(value);
      return operator === "In" ? listed : !listed;
    })
  );
}
