import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { v3Kinds } from "../../src/aggregated/v3-kinds.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { validateObject } from "../../src/api/validation/validate.ts";
import { conformanceData, NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { startV3Api, type V3Api } from "../support/v3-api.ts";

/**
 * Verdicts of the public system's own validator on its own rows, held against what our v3 API answers when it is asked to create
 * the object (as a dry run, so that rows do not meet each other): 422 Invalid where the row is invalid, anything else where it is valid.
 */
interface Row {
  line: number;
  description: string;
  kind: string;
  object: unknown;
  valid: boolean;
}
type Fields = Record<string, unknown>;

const data = conformanceData<{ rows: Row[] }>("validation-cases.json");

/** How a row, a whole object or a part of one, becomes an object to create. */
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
  ProtoPort: (port) => dataplane({ failsafeInboundHostPorts: [{ port: 1, ...(port as Fields) }] }),
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

const policy = (spec: unknown): Fields => ({ kind: "NetworkPolicy", metadata: { name: "a" }, spec });
const dataplane = (spec: unknown): Fields => ({ kind: "DataplaneConfiguration", metadata: { name: "default" }, spec });
const controllers = (spec: unknown): Fields => ({
  kind: "KubeControllersConfiguration",
  metadata: { name: "default" },
  spec,
});

/** Why a row says nothing about us; undefined when it does. */
function leftOut(row: Row): string | undefined {
  if (!Object.hasOwn(WRAPPED, row.kind)) return "no such resource here";
  if (row.kind === "BlockAffinitySpec") return "our field deleted is a flag, theirs is text";
  if (row.kind.endsWith("NetworkPolicy") && /valid name of 253 chars/.test(row.description)) {
    return "kept under its tier's name and its own, which together are longer than the orchestrator lets a name be";
  }
  if (/with empty values/.test(row.description)) return "controllers of the etcd datastore, which we do not have";
  if (/IPv6 list of ExternalNodesCIDRList/.test(row.description)) return "either family is allowed here";
  if (row.kind === "FelixConfigurationSpec" && THEIRS.test(JSON.stringify(row.object))) return "a field we do not have";
  if (isRefusedByName(row)) return "a field or a value that we refuse by name";
  return undefined;
}

/** Such a row says nothing of the rule that it is about. */
function isRefusedByName(row: Row): boolean {
  const refused = ["FIELD_REFUSED", "VALUE_WITHOUT_EFFECT"];
  return validateObject(objectOf(row)).some(({ code }) => refused.includes(code));
}

const objectOf = (row: Row) =>
  inOurWords({ apiVersion: "vendor.io/v3", ...WRAPPED[row.kind]!(row.object) }) as KubeObject;

const THEIRS =
  /iptables(?!Cleanup)|openstack|windows|wireguard|awsSrcDst|deviceRoute|logSeveritySys|"routeTableRange"/i;

function inOurWords(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replaceAll(
      /\{"\$repeat":\["(.)",(\d+)\]\}/g,
      (_, char: string, times: string) => `"${char.repeat(Number(times))}"`,
    )
    .replaceAll("projectcalico.org/", "vendor.io/")
    .replaceAll("ProjectCalico.org/", "Vendor.io/")
    .replaceAll('"kubeNodePortRanges"', '"nodePortRanges"');
  return JSON.parse(text);
}

const plurals = new Map(v3Kinds().map(({ served }) => [served.kind, served]));

describe.skipIf(!data)(`validation rows of the public system${data ? "" : ` (${NO_CONFORMANCE_DATA})`}`, () => {
  const rows = data?.rows ?? [];
  const ours = rows.filter((row) => leftOut(row) === undefined);
  let api: V3Api;
  beforeAll(async () => {
    api = await startV3Api();
    // The tier the one row with a dot in its name is in.
    const tier = { apiVersion: "vendor.io/v3", kind: "Tier", metadata: { name: "th" } };
    await api.create("/apis/vendor.io/v3/tiers", tier);
  });
  afterAll(() => api.close());

  it.each(ours.map((row) => [`${row.kind} line ${row.line}: ${row.description}`, row] as const))(
    "%s",
    async (_title, row) => {
      const object = objectOf(row);
      const { plural, namespaced } = plurals.get(object.kind)!;
      if (namespaced) delete object.metadata.namespace;
      const path = `/apis/vendor.io/v3/${namespaced ? "namespaces/default/" : ""}${plural}`;
      const { status, body } = await api.call("POST", `${path}?dryRun=All&fieldValidation=Strict`, { body: object });
      const verdict = refusesAsInvalid(status, body) ? "invalid" : "valid";
      expect([verdict, body.message]).toEqual([row.valid ? "valid" : "invalid", body.message]);
    },
  );

  /** A field nobody knows is a bad request, and as invalid as can be; a singleton that exists already was judged before. */
  function refusesAsInvalid(status: number, body: { message?: string }): boolean {
    return status === 422 || (status === 400 && /strict decoding error/.test(body.message ?? ""));
  }

  it("counts what was held against us and what was left out, by kind", () => {
    const left: Record<string, Record<string, number>> = {};
    for (const row of rows) {
      const reason = leftOut(row);
      if (reason === undefined) continue;
      left[reason] ??= {};
      left[reason][row.kind] = (left[reason][row.kind] ?? 0) + 1;
    }
    console.info(`validation rows through the v3 API: ${ours.length} of ${rows.length} held; left out:`, left);
    expect(ours.length).toBeGreaterThan(320);
  });
});
