import { CLUSTER_KINDS } from "../../api/tables/cluster-kinds.ts";
import { ENDPOINT_RULES } from "../../api/tables/endpoint-rules.ts";
import { PLATFORM_LIMITS } from "../../api/tables/platform-limits.ts";
import { ENDPOINT_PROBLEMS, endpointMapProblems, missingEndpointMap } from "../../api/validation/endpoint-map.ts";
import type { Workload } from "../../api/workload-objects.ts";
import { parseAddress } from "../../kit/ip.ts";
import { isAgentHealthy } from "../agent-ready.ts";
import { clusterFacts, kindOf } from "../cluster-facts.ts";
import type { Observation } from "../observation.ts";
import { isEbpfOn } from "../plans/cluster-view.ts";
import type { Proof } from "../probe/prove-address.ts";
import { BEFORE_EBPF, type Check, fail, fromTable, OK, ok, type Situation, skip, warn } from "./check.ts";

const ebpf = { for: BEFORE_EBPF, planned: ["install", "switch"], ebpfOnly: true, group: "api address" } as const;
const REAL_ADDRESS =
  "eBPF serves cluster IPs itself, so it must reach the API server by another address than its cluster IP. See docs/guide/install.md#the-address-of-the-api-server.";

/** The rules of the endpoint map, evaluated by the code that also validates the map when it is written. */
const MAP_CHECKS = fromTable(ENDPOINT_PROBLEMS, (code) => ({
  ...ebpf,
  run: (seen, situation) => {
    if (code === "ENDPOINT_MAP_MISSING") return missingMap(seen, situation);
    const { endpointMap } = seen.service;
    if (!endpointMap) return skip("there is no API endpoint ConfigMap yet");
    const found = [
      ...endpointMapProblems(endpointMap, clusterFacts(seen), seen.names).filter((problem) => problem.code === code),
      ...(code === "ENDPOINT_HOST_ONE_OF_MANY" ? oneOfTheServers(seen) : []),
    ];
    const [first] = found;
    if (!first) return OK;
    const evidence = [...new Set(found.map(({ message }) => message))];
    // Before a procedure that writes the map, a good address is all that is needed.
    const instead = situation.purpose === "running" ? undefined : goodCandidate(seen);
    return instead
      ? warn([...evidence, `${instead.host}:${instead.port} (${instead.from}) would be right`], first.fix)
      : fail(evidence, first.fix);
  },
}));

/** Where the control plane shows no nodes, its servers still show in their EndpointSlice. */
function oneOfTheServers(seen: Observation): { message: string; fix: string }[] {
  const { servers } = seen.apiAddress;
  const { host } = addressInMap(seen);
  const isOne = servers.length > 1 && servers.some(({ address }) => address === host);
  if (!isOne) return [];
  const message = `${host} is one of ${servers.length} API servers (EndpointSlice of default/kubernetes).`;
  return [{ message, fix: ENDPOINT_PROBLEMS.ENDPOINT_HOST_ONE_OF_MANY.fix }];
}

function missingMap(seen: Observation, { purpose }: Situation) {
  const { endpointMap } = seen.service;
  if (endpointMap) return ok(`${endpointMap.metadata.namespace}/${endpointMap.metadata.name}`);
  const kind = kindOf(seen);
  if (!ENDPOINT_RULES[kind].needed) return ok(ENDPOINT_RULES[kind].because);
  const good = goodCandidate(seen);
  if (good && purpose !== "running") return ok(`${good.host}:${good.port} will be written (${good.from})`);
  // Where eBPF is the default the operator takes the address from the platform itself.
  if (good && CLUSTER_KINDS[kind].ebpfByDefault) return ok(`${good.host}:${good.port} (${good.from})`);
  const [problem] = missingEndpointMap(clusterFacts(seen), seen.names);
  return fail(problem ? [problem.message] : [], problem?.fix);
}

function goodCandidate({ apiAddress }: Observation) {
  return apiAddress.candidates.find(({ against }) => against.length === 0);
}

function addressInMap({ service, names }: Observation): { host: string; port: string } {
  const data = (service.endpointMap?.["data"] ?? {}) as Record<string, unknown>;
  const { hostKey, portKey } = names.endpointMap;
  return { host: String(data[hostKey] ?? ""), port: String(data[portKey] ?? "") };
}

/** The address the service uses, or would use. */
export function chosenAddress(seen: Observation): { host: string; port: string } | undefined {
  const written = addressInMap(seen);
  return written.host && written.port ? written : goodCandidate(seen);
}

export const API_ADDRESS_CHECKS: readonly Check[] = [
  ...MAP_CHECKS,
  {
    code: "API_ADDRESS_NOT_STABLE",
    title: "No stable address of the API server is known",
    why: "If the address changes when the API server restarts or scales, every node loses it.",
    fix: "vendorctl switch --to bpf --api-server HOST:PORT",
    rule: PLATFORM_LIMITS.stableAddress.because,
    ...ebpf,
    for: ["install", "switch"],
    run: (seen, { purpose }) => {
      const kind = kindOf(seen);
      if (!ENDPOINT_RULES[kind].needed) return ok(ENDPOINT_RULES[kind].because);
      const good = goodCandidate(seen);
      if (good) return ok(`${good.host}:${good.port} (${good.from})`);
      const tried = seen.apiAddress.candidates.map(
        ({ host, port, from, against }) => `${host}:${port} (${from}): ${against[0]}`,
      );
      const fix =
        purpose === "install"
          ? "vendorctl install --dataplane standard   # later: vendorctl switch --to bpf --api-server HOST:PORT"
          : "vendorctl switch --to bpf --api-server HOST:PORT";
      return fail([...tried, `it would be ${ENDPOINT_RULES[kind].address}`], fix);
    },
  },
  {
    code: "API_ADDRESS_UNRESOLVED",
    title: "API server name does not resolve",
    why: "Without an address for the name, the operator and the node agents cannot connect to the API server.",
    fix: "Create the DNS record, or give an address with --api-server HOST:PORT",
    rule: REAL_ADDRESS,
    ...ebpf,
    run: (seen, { proofs }) => {
      const host = chosenAddress(seen)?.host ?? "";
      if (isEbpfOn(seen) && agentsAreReady(seen)) return ok("node agents are connected");
      const found = proved(seen, proofs, ["unresolved"], "warn");
      // A private name is for the nodes' resolver; that this machine cannot resolve it is no finding.
      const isPrivate = found.status === "warn" && PRIVATE_NAME.test(host);
      return isPrivate ? skip(`${host} is a private name, which the nodes' resolver must know`) : found;
    },
  },
  {
    code: "API_ADDRESS_UNREACHABLE",
    title: "API server address does not answer",
    why: "Once kube-proxy is disabled, this address is the only path to the API server.",
    fix: "Check the load balancer, the port and the firewall between nodes and API server.",
    rule: REAL_ADDRESS,
    ...ebpf,
    run: (seen, { proofs }) => proved(seen, proofs, ["unreachable"], "warn"),
  },
  {
    code: "API_ADDRESS_OTHER_SERVER",
    title: "API server address belongs to another server",
    why: "Every component would talk to the wrong server, or refuse its certificate and never start.",
    fix: "Correct the address, or add it to the names in the API server's certificate.",
    rule: REAL_ADDRESS,
    ...ebpf,
    run: (seen, { proofs }) => proved(seen, proofs, ["wrong certificate", "another server"], "fail"),
  },
  {
    code: "API_NAME_ONLY_IN_CLUSTER",
    title: "API server name resolves in cluster DNS only",
    why: "Cluster DNS is a Service. It needs the data plane, and the data plane needs the API server first: a deadlock.",
    fix: "Use a name that the nodes' resolver knows, or an IP address.",
    rule: REAL_ADDRESS,
    ...ebpf,
    run: (seen) => {
      const host = chosenAddress(seen)?.host ?? "";
      const { dnsDomain } = seen.apiAddress;
      const inside = host.endsWith(`.${dnsDomain}`) || /(^|\.)svc\.?$/.test(host);
      return inside ? fail([`${host} is in the cluster's own domain ${dnsDomain}`]) : OK;
    },
  },
  {
    code: "OPERATOR_NAMESERVER_MISSING",
    title: "Operator does not use the cloud's name server",
    why: "In AWS-like clouds only the cloud's resolver knows the API server's name; cluster DNS answers only after the network works.",
    fix: "Patch the operator's Deployment with the cloud's name server.",
    rule: CLUSTER_KINDS.eks.because,
    ...ebpf,
    for: ["running", "switch"],
    run: (seen) => {
      const nameserver = operatorNameserver(seen);
      const { operator } = seen.service;
      if (!nameserver) return skip("only in AWS-like clouds");
      if (!operator) return skip("there is no operator yet; the installation sets it");
      const spec = (operator as Workload).spec?.template?.spec;
      const asked = (spec?.dnsConfig?.["nameservers"] ?? []) as string[];
      if (asked.length === 1 && asked[0] === nameserver) return ok(nameserver);
      const patch = { spec: { template: { spec: { dnsConfig: { nameservers: [nameserver] } } } } };
      const { name, namespace } = operator.metadata;
      const command = `kubectl -n ${namespace} patch deployment ${name} -p '${JSON.stringify(patch)}'`;
      return fail(
        [`Deployment ${namespace}/${name} has the name servers ${asked.join(", ") || "of its node only"}`],
        command,
      );
    },
  },
  {
    code: "OPERATOR_RESOLVES_IN_CLUSTER",
    title: "Operator resolves the API server in cluster DNS",
    why: "Cluster DNS needs the data plane, and the data plane waits for the operator: after a reboot neither starts.",
    fix: "Set dnsPolicy of the operator's pods to Default, the node's resolver.",
    rule: REAL_ADDRESS,
    ...ebpf,
    for: ["running", "switch"],
    run: (seen) => {
      const { operator } = seen.service;
      const host = chosenAddress(seen)?.host;
      if (!operator || !host) return skip("there is no operator, or no address yet");
      if (parseAddress(host)) return ok(`${host} needs no resolver`);
      const spec = (operator as Workload).spec?.template?.spec;
      const servers = (spec?.dnsConfig?.["nameservers"] ?? []) as string[];
      if (spec?.dnsPolicy === "Default" || servers.length > 0) return OK;
      const { name, namespace } = operator.metadata;
      const policy = spec?.dnsPolicy ?? "ClusterFirst";
      const patch = { spec: { template: { spec: { dnsPolicy: "Default" } } } };
      const command = `kubectl -n ${namespace} patch deployment ${name} -p '${JSON.stringify(patch)}'`;
      return warn([`Deployment ${namespace}/${name} has dnsPolicy ${policy}, and the API server is ${host}`], command);
    },
  },
];

/** Names that public DNS never has: private use by reservation, or of one network. */
const PRIVATE_NAME = /\.(?:internal|local|lan|home\.arpa)$/;

function agentsAreReady({ service, names }: Observation): boolean {
  return service.agents.length > 0 && service.agents.every((agent) => isAgentHealthy(agent, service, names));
}

function operatorNameserver(seen: Observation): string | undefined {
  const row = CLUSTER_KINDS[kindOf(seen)];
  return row.operatorNameserver;
}

/** How far a probe came. */
const STAGE: Readonly<Record<Proof["outcome"], number>> = {
  unresolved: 0,
  unreachable: 1,
  "wrong certificate": 2,
  "another server": 2,
  proven: 3,
};

function proved(
  seen: Observation,
  proofs: readonly Proof[],
  bad: readonly Proof["outcome"][],
  as: "skip" | "warn" | "fail",
) {
  const address = chosenAddress(seen);
  if (!address) return skip("no address is known");
  const proof = proofs.find(({ host, port }) => host === address.host && port === address.port);
  if (!proof) return skip(`${address.host}:${address.port} was not probed`);
  // What stopped the probe earlier left this unknown.
  if (STAGE[proof.outcome] < Math.min(...bad.map((outcome) => STAGE[outcome]))) return skip(proof.evidence);
  if (!bad.includes(proof.outcome)) return ok(proof.evidence);
  return as === "warn" ? warn([proof.evidence]) : fail([proof.evidence]);
}
