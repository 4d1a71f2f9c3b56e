import { describe, expect, it } from "vitest";
import { conformanceData, NO_CONFORMANCE_DATA } from "../../../test/support/conformance.ts";
import { validateObject } from "./validate.ts";

/** Verdicts of the public system's own validator on its own test rows, held against ours. */
interface Row {
  line: number;
  description: string;
  kind: string;
  object: unknown;
  valid: boolean;
}
type Fields = Record<string, unknown>;

const data = conformanceData<{ rows: Row[] }>("validation-cases.json");

/** How a row's fragment becomes a whole object of ours. */
const WRAPPED: Record<string, (fragment: unknown) => Fields> = {
  Rule: (rule) => policy({ ingress: [rule] }),
  EntityRule: (source) => policy({ ingress: [{ action: "Allow", source }] }),
  ICMPFields: (icmp) => policy({ ingress: [{ action: "Allow", protocol: "ICMP", icmp }] }),
  HTTPMatch: (http) => policy({ ingress: [{ action: "Allow", http }] }),
  Protocol: (protocol) => policy({ ingress: [{ action: "Allow", protocol }] }),
  NetworkPolicy: (whole) => ({ kind: "NetworkPolicy", ...(whole as Fields) }),
  GlobalNetworkPolicy: (whole) => ({ kind: "GlobalNetworkPolicy", ...(whole as Fields) }),
  HostEndpointSpec: (spec) => ({ kind: "HostEndpoint", metadata: { name: "a" }, spec }),
  GlobalNetworkSet: (whole) => ({ kind: "GlobalNetworkSet", ...(whole as Fields) }),
  NetworkSet: (whole) => ({ kind: "NetworkSet", ...(whole as Fields) }),
  GlobalNetworkSetSpec: (spec) => ({ kind: "GlobalNetworkSet", metadata: { name: "a" }, spec }),
  NetworkSetSpec: (spec) => ({ kind: "NetworkSet", metadata: { name: "a" }, spec }),
  ProfileSpec: (spec) => ({ kind: "Profile", metadata: { name: "a" }, spec }),
  IPPool: (whole) => ({ kind: "IPPool", ...(whole as Fields) }),
  IPPoolSpec: (spec) => ({ kind: "IPPool", metadata: { name: "a" }, spec }),
  Tier: (whole) => ({ kind: "Tier", ...(whole as Fields) }),
  ProtoPort: (port) => ({ ...dataplane({ failsafeInboundHostPorts: [{ port: 1, ...(port as Fields) }] }) }),
  FelixConfigurationSpec: (spec) => dataplane(spec),
  KubeControllersConfigurationSpec: (spec) => controllers(spec),
  NodeControllerConfig: (node) => controllers({ controllers: { node } }),
  LoadBalancerControllerConfig: (loadBalancer) => controllers({ controllers: { loadBalancer } }),
  Template: (template) =>
    controllers({
      controllers: { node: { hostEndpoint: { templates: [{ generateName: "a", ...(template as Fields) }] } } },
    }),
  BlockAffinitySpec: (spec) => ({ kind: "BlockAffinity", metadata: { name: "a" }, spec }),
};

const policy = (spec: unknown): Fields => ({ kind: "NetworkPolicy", metadata: { name: "a", namespace: "b" }, spec });
const dataplane = (spec: unknown): Fields => ({ kind: "DataplaneConfiguration", metadata: { name: "default" }, spec });
const controllers = (spec: unknown): Fields => ({
  kind: "KubeControllersConfiguration",
  metadata: { name: "default" },
  spec,
});

/** Rows whose verdict rests on something this room leaves to another, by what they test. */
const ELSEWHERE: [reason: string, test: (row: Row) => boolean][] = [
  ["no such resource here", (row) => !Object.hasOwn(WRAPPED, row.kind)],
  [
    "selectors are read by the policy room",
    (row) => /invalid selector|bad selectors|invalid nodeSelector$/.test(row.description),
  ],
  ["labels and annotations of an object are checked by the API server", (row) => /in metadata/.test(row.description)],
  ["our field is a flag, theirs is text", (row) => row.kind === "BlockAffinitySpec"],
  ["controllers of the etcd datastore only", (row) => /with empty values/.test(row.description)],
  ["either family is allowed here", (row) => /IPv6 list of ExternalNodesCIDRList/.test(row.description)],
];

/** Fields of the public system that we do not have; a row about them says nothing about us. */
const THEIRS =
  /iptables(?!Cleanup)|openstack|windows|wireguard|awsSrcDst|deviceRoute|logSeveritySys|"routeTableRange"/i;

function inOurWords(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replaceAll(
      /\{"\$repeat":\["(.)",(\d+)\]\}/g,
      (_, char: string, times: string) => `"${char.repeat(Number(times))}"`,
    )
    .replaceAll("projectcalico.org/", "vendor.io/")
    .replaceAll('"kubeNodePortRanges"', '"nodePortRanges"');
  return JSON.parse(text);
}

describe.skipIf(!data)(`validation rows of the public system${data ? "" : ` (${NO_CONFORMANCE_DATA})`}`, () => {
  const rows = data?.rows ?? [];
  const why = (row: Row) =>
    ELSEWHERE.find(([, test]) => test(row))?.[0] ??
    (row.kind === "FelixConfigurationSpec" && THEIRS.test(JSON.stringify(row.object))
      ? "a field we do not have"
      : undefined);
  const ours = rows.filter((row) => why(row) === undefined);

  it.each(ours.map((row) => [`${row.kind} line ${row.line}: ${row.description}`, row] as const))(
    "%s",
    (_title, row) => {
      const object = { apiVersion: "vendor.io/v3", ...(inOurWords(WRAPPED[row.kind]!(row.object)) as Fields) };
      const problems = validateObject(object as never);
      expect(problems.length === 0, JSON.stringify(problems)).toBe(row.valid);
    },
  );

  it("counts what was held against us and what was left out", () => {
    const left = new Map<string, number>();
    for (const row of rows) {
      const reason = why(row);
      if (reason) left.set(reason, (left.get(reason) ?? 0) + 1);
    }
    console.info(`validation rows: ${ours.length} of ${rows.length} held;`, Object.fromEntries(left));
    expect(ours.length).toBeGreaterThan(300);
  });
});
