import { contains, parseAddress, parseCidr } from "../../kit/ip.ts";
import { type Names, vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { ENDPOINT_RULES, type EndpointRule } from "../tables/endpoint-rules.ts";
import type { ClusterFacts } from "./facts.ts";
import { nearestName } from "./nearest-name.ts";
import { type Problem, reporters } from "./problem.ts";

const STABLE = "The address must stay stable when the API server restarts or scales.";
const HOST_RULE =
  "The host is an FQDN or a stable IP address, without scheme and port. See docs/guide/install.md#the-address-of-the-api-server.";

export const ENDPOINT_PROBLEMS = {
  ENDPOINT_MAP_MISSING: {
    title: "API endpoint ConfigMap is missing",
    why: "In eBPF mode the API server is not reachable at its cluster IP until the data plane runs, and no other address is known.",
    fix: "vendorctl switch --to bpf --api-server HOST:PORT",
    rule: "The operator reads the API server's address from this ConfigMap. See docs/guide/install.md#the-address-of-the-api-server.",
  },
  ENDPOINT_MAP_MISPLACED: {
    title: "API endpoint ConfigMap has a wrong name or namespace",
    why: "The operator reads one config map, by its name, in its own namespace.",
    fix: "Create the map under the expected name in the operator's namespace.",
    rule: "metadata.name is orchestrator-services-endpoint; metadata.namespace is vendor-operator",
  },
  ENDPOINT_KEY_MISSING: {
    title: "API endpoint ConfigMap lacks the host or the port",
    why: "The operator needs both; with one missing, it uses neither.",
    fix: "Set both keys.",
    rule: "data.ORCHESTRATOR_SERVICE_HOST and data.ORCHESTRATOR_SERVICE_PORT are required",
  },
  ENDPOINT_KEY_UNKNOWN: {
    title: "API endpoint ConfigMap has an unknown key",
    why: "Every key of the map becomes an environment variable; a misspelt one hides that the right one is missing.",
    fix: "Remove the key.",
    rule: "The map has the two keys ORCHESTRATOR_SERVICE_HOST and ORCHESTRATOR_SERVICE_PORT.",
  },
  ENDPOINT_VALUE_NOT_TEXT: {
    title: "Value of the API endpoint ConfigMap is not text",
    why: "ConfigMaps hold text only; an unquoted port is a number, and the API server refuses the whole map.",
    fix: "Put the value in quotes.",
    rule: "The port is text: write it in quotes. See docs/guide/install.md#the-address-of-the-api-server.",
  },
  ENDPOINT_HOST_EMPTY: {
    title: "The API server's host is empty",
    why: "Without a host no component can reach the API server once kube-proxy is disabled.",
    fix: "Write the API server's real address.",
    rule: HOST_RULE,
  },
  ENDPOINT_HOST_HAS_SCHEME: {
    title: "The host begins with a scheme",
    why: "The host is used as it is; with https:// in it, the address does not resolve.",
    fix: "Write only the host.",
    rule: HOST_RULE,
  },
  ENDPOINT_HOST_HAS_PORT: {
    title: "The host ends with a port",
    why: "The port has a key of its own; written twice, the address cannot be reached.",
    fix: "Write the port under its own key.",
    rule: HOST_RULE,
  },
  ENDPOINT_HOST_MALFORMED: {
    title: "The host is neither a domain name nor an IP",
    why: "It can never be reached.",
    fix: "Write a domain name or an IP address and nothing else.",
    rule: HOST_RULE,
  },
  ENDPOINT_HOST_LOOPBACK: {
    title: "The host is a loopback address",
    why: "Each node would look for the API server on itself; only control-plane nodes could find it.",
    fix: "Write an address that reaches the API server from every node.",
    rule: HOST_RULE,
  },
  ENDPOINT_HOST_CLUSTER_IP: {
    title: "The host is the API server's cluster IP",
    why: "In eBPF mode this service is what makes cluster IPs work, so it cannot depend on one to start.",
    fix: "Write the API server's real address, not that of its service.",
    rule: "eBPF serves cluster IPs itself, so it cannot depend on one. See docs/guide/install.md#the-address-of-the-api-server.",
  },
  ENDPOINT_HOST_DYNAMIC: {
    title: "The host is an IP that may change",
    why: "When the node restarts with another address, the whole cluster loses the API server.",
    fix: "Use a DNS record of its own, a static IP, or a load balancer.",
    rule: "A single control-plane node must be reached by a dedicated DNS record or a static IP, never a dynamic IP that changes on restart.",
  },
  ENDPOINT_HOST_ONE_OF_MANY: {
    title: "The host is one of several API servers",
    why: "When that one node goes, every node loses the API server though others still run.",
    fix: "Write the address of the load balancer in front of the API servers.",
    rule: `${STABLE} With several API servers, use the address of the load balancer in front of them.`,
  },
  ENDPOINT_HOST_NOT_FOR_KIND: {
    title: "The host is not what this kind of cluster has",
    why: "On this kind of cluster the stable address has a known form, and this is not it.",
    fix: "Write the address this kind of cluster gives the API server.",
    rule: "The address has a known form on each kind of cluster. See docs/guide/cluster-kinds.md.",
  },
  ENDPOINT_PORT_MALFORMED: {
    title: "The port is not a port",
    why: "A port is a whole number from 1 to 65535.",
    fix: 'Write the API server\'s port, such as "6443".',
    rule: "The port is text: write it in quotes. See docs/guide/install.md#the-address-of-the-api-server.",
  },
  ENDPOINT_PORT_NOT_FOR_KIND: {
    title: "The port is not what this kind of cluster has",
    why: "On this kind of cluster the API server's port is known, and this is another.",
    fix: "Write the port this kind of cluster has.",
    rule: "The address has a known form on each kind of cluster. See docs/guide/cluster-kinds.md.",
  },
} as const;

const at = reporters(ENDPOINT_PROBLEMS);

/** Everything wrong with the ConfigMap that has the API server's real address. */
export function endpointMapProblems(map: KubeObject, facts: ClusterFacts = {}, names: Names = vendorNames): Problem[] {
  const { hostKey, portKey } = names.endpointMap;
  const data = (map["data"] ?? {}) as Record<string, unknown>;
  const rule: EndpointRule | undefined = facts.kind && ENDPOINT_RULES[facts.kind];
  const host = readText(data, hostKey);
  const port = readText(data, portKey);
  return [
    ...placeProblems(map, names),
    ...unknownKeys(data, [hostKey, portKey]),
    ...host.problems,
    ...(host.text === undefined ? [] : hostProblems(host.text, { path: `data.${hostKey}`, portKey, facts, rule })),
    ...port.problems,
    ...(port.text === undefined ? [] : portProblems(port.text, `data.${portKey}`, rule)),
  ];
}

/** eBPF without a map, on a cluster that needs one or may. */
export function missingEndpointMap(facts: ClusterFacts, names: Names = vendorNames): Problem[] {
  const rule: EndpointRule | undefined = facts.kind && ENDPOINT_RULES[facts.kind];
  if (rule && !rule.needed) return [];
  const { name } = names.endpointMap;
  const message = `eBPF needs ConfigMap ${names.namespaces.operator}/${name}, which does not exist.`;
  return [at.ENDPOINT_MAP_MISSING("metadata.name", message, rule && `Create it with ${rule.address}.`)];
}

function placeProblems(map: KubeObject, names: Names): Problem[] {
  const wanted = { name: names.endpointMap.name, namespace: names.namespaces.operator };
  return (["name", "namespace"] as const)
    .filter((key) => map.metadata[key] !== wanted[key])
    .map((key) =>
      at.ENDPOINT_MAP_MISPLACED(
        `metadata.${key}`,
        `${key} of the API endpoint ConfigMap must be ${wanted[key]}, not ${map.metadata[key] ?? "empty"}.`,
        `Set metadata.${key} to ${wanted[key]}.`,
      ),
    );
}

function unknownKeys(data: Record<string, unknown>, known: string[]): Problem[] {
  return Object.keys(data)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const meant = nearestName(key, known);
      return at.ENDPOINT_KEY_UNKNOWN(
        `data.${key}`,
        `The API endpoint ConfigMap has no key ${key}.`,
        meant ? `Did you mean ${meant}?` : undefined,
      );
    });
}

function readText(data: Record<string, unknown>, key: string): { text?: string; problems: Problem[] } {
  const value = data[key];
  const path = `data.${key}`;
  if (value === undefined || value === null) {
    return { problems: [at.ENDPOINT_KEY_MISSING(path, `The API endpoint ConfigMap lacks ${key}.`, `Set ${path}.`)] };
  }
  if (typeof value === "string") return { text: value, problems: [] };
  const message = `${path} must be text, not the ${typeof value} ${JSON.stringify(value)}.`;
  // The value is still worth checking, so that everything is said at once.
  return {
    ...(typeof value === "number" ? { text: String(value) } : {}),
    problems: [at.ENDPOINT_VALUE_NOT_TEXT(path, message, `Put it in quotes: ${key}: "${String(value)}".`)],
  };
}

interface HostCheck {
  path: string;
  portKey: string;
  facts: ClusterFacts;
  rule: EndpointRule | undefined;
}

function hostProblems(written: string, check: HostCheck): Problem[] {
  const { path } = check;
  if (written.trim() === "") return [at.ENDPOINT_HOST_EMPTY(path, "The API server's host is empty.")];
  const problems: Problem[] = [];
  let host = written;
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(host)?.[0];
  if (scheme) {
    host = host.slice(scheme.length).replace(/\/$/, "");
    const message = `The host must not begin with ${scheme}.`;
    problems.push(at.ENDPOINT_HOST_HAS_SCHEME(path, message, `Write ${withoutPort(host).host}.`));
  }
  const split = withoutPort(host);
  if (split.port !== undefined) {
    const fix = `Write ${split.host} here and "${split.port}" under ${check.portKey}.`;
    problems.push(at.ENDPOINT_HOST_HAS_PORT(path, `The host must not end with the port ${split.port}.`, fix));
  }
  return [...problems, ...bareHostProblems(split.host, check)];
}

/** `host:6443` and `[::1]:6443` apart; a bare IPv6 address has no port. */
function withoutPort(host: string): { host: string; port?: string } {
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(host);
  if (bracketed) return bracketed[2] === undefined ? { host } : { host: bracketed[1]!, port: bracketed[2] };
  const match = /^([^:]+):(\d+)$/.exec(host);
  return match ? { host: match[1]!, port: match[2]! } : { host };
}

function bareHostProblems(host: string, check: HostCheck): Problem[] {
  const { path, rule } = check;
  const address = parseAddress(host);
  if (!address && !isDomainName(host)) {
    return [at.ENDPOINT_HOST_MALFORMED(path, `"${host}" is neither a domain name nor an IP address.`)];
  }
  if (isLoopback(host)) return [at.ENDPOINT_HOST_LOOPBACK(path, `${host} is a loopback address.`)];
  if (isClusterIP(host, check.facts)) {
    return [at.ENDPOINT_HOST_CLUSTER_IP(path, `${host} is the API server's cluster IP, which eBPF cannot start from.`)];
  }
  const problems = nodeAddressProblems(host, check);
  if (rule?.host && !(rule.host.pattern.test(host) && !(address && rule.host.say === "a domain name"))) {
    const message = `On this kind of cluster the host is ${rule.host.say}, not ${host}.`;
    problems.push(at.ENDPOINT_HOST_NOT_FOR_KIND(path, message, `Write ${rule.address}.`));
  }
  return problems;
}

/** Rules 1 and 2: a node's own address is stable only if it is static and there is no other API server. */
function nodeAddressProblems(host: string, check: HostCheck): Problem[] {
  const nodes = check.facts.nodes ?? [];
  const node = nodes.find((candidate) => candidate.addresses.some((address) => sameAddress(address, host)));
  if (!node || !parseAddress(host)) return [];
  const problems: Problem[] = [];
  if (node.addressAssignment === "dynamic") {
    const message = `${host} is the dynamic address of node ${node.name} and changes when it restarts.`;
    problems.push(at.ENDPOINT_HOST_DYNAMIC(check.path, message));
  }
  const servers = nodes.filter((candidate) => candidate.controlPlane);
  if (servers.length > 1 && node.controlPlane) {
    const message = `${host} is node ${node.name}, one of ${servers.length} API servers.`;
    problems.push(at.ENDPOINT_HOST_ONE_OF_MANY(check.path, message));
  }
  return problems;
}

function sameAddress(a: string, b: string): boolean {
  const [x, y] = [parseAddress(a), parseAddress(b)];
  return x !== undefined && y !== undefined && x.family === y.family && x.value === y.value;
}

function isDomainName(host: string): boolean {
  const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;
  const labels = host.replace(/\.$/, "").split(".");
  // A last label of digits would be a mistyped IPv4 address.
  return host.length <= 253 && labels.every((part) => label.test(part)) && !/^\d+$/.test(labels.at(-1) ?? "");
}

const LOOPBACK = ["127.0.0.0/8", "0.0.0.0/32", "::1/128", "::/128", "::ffff:127.0.0.0/104"].map(
  (text) => parseCidr(text)!,
);

function isLoopback(host: string): boolean {
  const address = parseAddress(host);
  if (address) return LOOPBACK.some((cidr) => contains(cidr, address));
  return /^(localhost|ip6-localhost|.*\.localhost|localhost\.localdomain)\.?$/i.test(host);
}

function isClusterIP(host: string, facts: ClusterFacts): boolean {
  const address = parseAddress(host);
  if (!address) return /^kubernetes(\.default(\.svc(\..+)?)?)?\.?$/i.test(host);
  if ((facts.apiClusterIPs ?? []).some((clusterIP) => sameAddress(clusterIP, host))) return true;
  return (facts.serviceCidrs ?? []).some((text) => {
    const cidr = parseCidr(text);
    return cidr !== undefined && contains(cidr, address);
  });
}

function portProblems(port: string, path: string, rule: EndpointRule | undefined): Problem[] {
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65535) {
    return [at.ENDPOINT_PORT_MALFORMED(path, `"${port}" is not a port from 1 to 65535.`)];
  }
  if (rule?.port !== undefined && port !== rule.port) {
    const message = `On this kind of cluster the port is ${rule.port}, not ${port}.`;
    return [at.ENDPOINT_PORT_NOT_FOR_KIND(path, message, `Write "${rule.port}".`)];
  }
  return [];
}
