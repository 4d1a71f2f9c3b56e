import type { Names } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import type { ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import { ENDPOINT_RULES } from "../../../api/tables/endpoint-rules.ts";
import { endpointMapProblems } from "../../../api/validation/endpoint-map.ts";
import type { Problem } from "../../../api/validation/problem.ts";
import { CodedError } from "../../../kit/errors.ts";
import { nameOf, targetOf } from "../../actions/objects/target.ts";
import { clusterFacts, kindOf } from "../../cluster-facts.ts";
import type { ApiAddressSource, Observation } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { applyObjectsStep } from "../steps.ts";

export interface ApiAddress {
  host: string;
  port: string;
}

/** Where the API server is to be reached, and how that is known; or why it is not. */
export type AddressChoice =
  /** `from` is for people; `sources` are empty for an address that was given. */
  | { is: "known"; address: ApiAddress; from: string; sources: readonly ApiAddressSource[]; written: boolean }
  /** The operator reads it from the platform. */
  | { is: "not needed"; because: string }
  | { is: "unknown"; why: string };

const CHECK_FAILED = 3;

/**
 * The address for the endpoint map: the one given, else the one the map already has, else the best that was found and nothing speaks
 * against. A given address that breaks a rule is refused with the rule's own code.
 */
export function chooseApiAddress(observation: Observation, given: ApiAddress | undefined): AddressChoice {
  const kind = kindOf(observation);
  const there = addressInMap(observation);
  if (given) {
    refuseBad(observation, given);
    const written = there?.host === given.host && there.port === given.port;
    return { is: "known", address: given, from: "--api-server", sources: [], written };
  }
  if (there && problemsOf(observation, there).length === 0) {
    const from = `ConfigMap ${observation.names.endpointMap.name}`;
    return { is: "known", address: there, from, sources: foundIn(observation, there), written: true };
  }
  if (!ENDPOINT_RULES[kind].needed) return { is: "not needed", because: ENDPOINT_RULES[kind].because };
  const found = observation.apiAddress.candidates.find(({ against }) => against.length === 0);
  if (!found) return { is: "unknown", why: whyNone(observation, kind) };
  const { host, port, from, sources } = found;
  return { is: "known", address: { host, port }, from, sources, written: false };
}

function foundIn({ apiAddress }: Observation, { host, port }: ApiAddress): readonly ApiAddressSource[] {
  return apiAddress.candidates.find((candidate) => candidate.host === host && candidate.port === port)?.sources ?? [];
}

/** Install step 2. The operator reads the map when it starts, so it comes before the operator. */
export function endpointMapStep(
  { names, ...rest }: Observation,
  address: ApiAddress,
  from: string,
  options: Pick<Parameters<typeof applyObjectsStep>[1], "afterUndo"> = {},
): Step {
  const map = endpointMap(names, address);
  return applyObjectsStep(
    {
      id: "endpoint-map",
      title: "Create the API endpoint ConfigMap",
      where: `${nameOf(targetOf(map))}: ${address.host}:${address.port}`,
      because: `Without kube-proxy the API server is not reachable at its cluster IP, so every component reads its address (from ${from}) from this ConfigMap. ${ENDPOINT_RULES[kindOf(rest)].because} See docs/guide/install.md#the-address-of-the-api-server.`,
    },
    { objects: [map], ...options },
  );
}

function endpointMap(names: Names, { host, port }: ApiAddress): KubeObject {
  const { name, hostKey, portKey } = names.endpointMap;
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: names.namespaces.operator },
    data: { [hostKey]: host, [portKey]: port },
  };
}

function addressInMap({ service, names }: Observation): ApiAddress | undefined {
  const { hostKey, portKey } = names.endpointMap;
  const data = (service.endpointMap?.["data"] ?? {}) as Record<string, string | undefined>;
  const [host, port] = [data[hostKey], data[portKey]];
  const place = service.endpointMap?.metadata.namespace === names.namespaces.operator;
  return place && host && port ? { host, port } : undefined;
}

function refuseBad(observation: Observation, given: ApiAddress): void {
  const [problem] = problemsOf(observation, given);
  if (problem) throw new CodedError(problem.code, problem.message, { fix: problem.fix, exitCode: CHECK_FAILED });
}

function problemsOf(observation: Observation, address: ApiAddress): Problem[] {
  const { names } = observation;
  return endpointMapProblems(endpointMap(names, address), clusterFacts(observation), names);
}

function whyNone({ apiAddress }: Observation, kind: ClusterKind): string {
  const [best] = apiAddress.candidates;
  const wanted = `it would be ${ENDPOINT_RULES[kind].address}`;
  if (!best) return `no object in the cluster has it; ${wanted}`;
  return `${best.host}:${best.port} (${best.from}) cannot be used: ${best.against[0]?.replace(/\.$/, "")}; ${wanted}`;
}
