import { expect, it } from "vitest";
import type { Noun } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { warningFacts, warningText, writeWarnings } from "./write-warnings.ts";

const object = (kind: string, spec: object): KubeObject =>
  ({ apiVersion: "vendor.io/v3", kind, metadata: { name: "x" }, spec }) as KubeObject;
const dataplane = (spec: object) => ({ dataplaneConfiguration: object("DataplaneConfiguration", spec) });
const controllers = (spec: object) => ({ kubeControllersConfiguration: object("KubeControllersConfiguration", spec) });
const EBPF = dataplane({ bpfEnabled: true, policySyncPathPrefix: "/run/x" });
const LOG = object("GlobalNetworkPolicy", {
  ingress: [{ action: "Allow" }, { action: "Log" }],
  egress: [{ action: "Log" }],
});
const HTTP = object("NetworkPolicy", { ingress: [{ action: "Allow", http: { methods: ["GET"] } }] });
const SERVICES = object("IPPool", { cidr: "203.0.113.0/24", allowedUses: ["LoadBalancer"] });

it.each<[string, Noun, KubeObject, object, string[]]>([
  [
    "Log in eBPF",
    "globalNetworkPolicy",
    LOG,
    EBPF,
    ["EBPF_LOG_RULE spec.ingress[1].action", "EBPF_LOG_RULE spec.egress[0].action"],
  ],
  ["Log in nftables", "globalNetworkPolicy", LOG, dataplane({ bpfEnabled: false, policySyncPathPrefix: "/x" }), []],
  ["http without sidecars", "networkPolicy", HTTP, dataplane({}), ["HTTP_RULE_WITHOUT_SIDECARS spec.ingress[0].http"]],
  ["http with sidecars", "networkPolicy", HTTP, EBPF, []],
  [
    "a pool that eBPF cannot carry",
    "ipPool",
    object("IPPool", { ipipMode: "Always" }),
    EBPF,
    ["EBPF_IPIP_POOL spec.ipipMode"],
  ],
  [
    "a pool for a controller that is off",
    "ipPool",
    SERVICES,
    controllers({ controllers: { node: {} } }),
    ["POOL_WITHOUT_CONTROLLER spec.allowedUses"],
  ],
  ["a pool for one that runs", "ipPool", SERVICES, controllers({}), []],
  ["no configuration at all", "networkPolicy", HTTP, {}, []],
])("%s", (_, noun, written, facts, wanted) => {
  expect(writeWarnings(written, facts).map(({ code, path }) => `${code} ${path}`)).toEqual(wanted);
  expect(warningFacts(noun, written).length).toBeGreaterThan(0);
});

it("most objects are written without a look at the cluster, and a warning is one line", () => {
  expect(warningFacts("networkPolicy", object("NetworkPolicy", { ingress: [{ action: "Allow" }] }))).toEqual([]);
  expect(writeWarnings(LOG, EBPF).map(warningText)[0]).toBe(
    "spec.ingress[1].action: The eBPF data plane writes no lines for this Log rule. Read vendor node show counters, or log on the nftables data plane. [EBPF_LOG_RULE]",
  );
});
