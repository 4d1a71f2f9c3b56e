import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { podMtu } from "../../src/agent/pod-mtu.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { DataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { DATAPLANE_SETTINGS, type Setting } from "../../src/api/resources/dataplane-settings.ts";
import { REFUSED_FIELDS } from "../../src/api/tables/refused-fields.ts";
import { validateObject } from "../../src/api/validation/validate.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { conntrackTimes } from "../../src/dataplane/ebpf/conntrack/conntrack-times.ts";
import { desiredInterfaces } from "../../src/dataplane/ebpf/programs/desired-interfaces.ts";
import { desiredOverlay } from "../../src/dataplane/net/overlay.ts";
import { nodeSysctls } from "../../src/dataplane/net/sysctls.ts";
import { desiredRuleset } from "../../src/dataplane/nft/desired-ruleset.ts";
import type { NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import type { Log } from "../../src/kit/log.ts";
import { severityLog } from "../../src/kit/severity-log.ts";

/**
 * What is accepted has an effect. Each field of the table is set to another value than its default, and something that leaves the agent is another for it: rules, interfaces,
 * addresses of Services, sysctls, times of the programs, lines of the log. What needs a real node is shown by the named scenario, which must exist and set the field.
 */
type Spec = DataplaneConfiguration["spec"];
type Field = keyof typeof DATAPLANE_SETTINGS;

type Shown = { set: Spec; seenIn: (spec: Spec) => unknown } | { scenario: string };

const OVERLAY = "vxlan.test";
const link = (name: string, index: number, mtu = 1500) => ({
  ...{ index, name, kind: undefined, mac: "02:00:00:00:00:01", mtu, up: true },
  ...{ peer: undefined, master: undefined, vxlan: undefined },
});
const LINKS = [link("eth0", 1), link("storage0", 2, 1400), link("odd", 3)];
const ADDRESSES = [{ device: 1, address: "192.0.2.1/24" }];

const stored = (kind: string, name: string, spec: object, more: object = {}): KubeObject => ({
  ...{ apiVersion: kind === "Node" || kind === "Service" ? "v1" : "crd.vendor.io/v1", kind },
  metadata: { name, ...(kind === "Service" ? { namespace: "default" } : {}) },
  spec,
  ...more,
});

const node = (name: string, address: string) =>
  stored("Node", name, {}, { status: { addresses: [{ type: "InternalIP", address }] } });

/** The node `here` of a small cluster, as it calculates with this configuration. */
function modelWith(spec: Spec): ModelCopy {
  const calculator = createCalculator("here", vendorNames);
  const objects = [
    node("here", "192.0.2.1"),
    node("there", "192.0.2.2"),
    stored("IPPool", "pods", { cidr: "10.0.0.0/16", natOutgoing: true, vxlanMode: "Always" }),
    stored("Service", "dns", { clusterIP: "10.96.0.10", ports: [{ port: 53, protocol: "UDP" }] }),
    stored("BGPConfiguration", "default", { serviceClusterIPs: [{ cidr: "10.96.0.0/16" }] }),
    stored("HostEndpoint", "uplink", { node: "here", interfaceName: "eth0" }),
    stored("DataplaneConfiguration", "default", spec),
  ];
  for (const object of objects) calculator.set(object);
  calculator.inSync();
  const model = new ModelCopy();
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
  return model;
}

const rules = (spec: Spec) => {
  const { chains, sets } = desiredRuleset(modelWith(spec), { hostInterfaces: [{ name: "eth0", addresses: [] }] });
  return [[...chains], [...sets].map(([name, { elements }]) => [name, [...elements]])];
};
const services = (spec: Spec) => [...modelWith(spec).services.values()].map(({ clusterAddress }) => clusterAddress);
const overlay = (spec: Spec) => {
  const netlink = { links: () => LINKS, addresses: () => ADDRESSES } as unknown as NetlinkPort;
  return desiredOverlay(modelWith(spec), netlink);
};
const interfaces = (spec: Spec) =>
  desiredInterfaces(modelWith(spec), { links: LINKS, addresses: ADDRESSES, routes: () => [], overlay: OVERLAY }).map(
    ({ name, place }) => `${place} ${name}`,
  );
const mtu = (spec: Spec) =>
  podMtu(
    { links: LINKS, addresses: ADDRESSES },
    { own: { addressV4: "192.0.2.1", addressV6: null }, pattern: spec.mtuIfacePattern },
    [],
  );
const logged = ({ logSeverityScreen = "Info" }: Spec) => {
  const lines: string[] = [];
  const write = (_: object, message: string) => void lines.push(message);
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  const quiet = severityLog(log, () => logSeverityScreen);
  quiet.debug({}, "debug");
  quiet.info({}, "info");
  return lines;
};
const settings = (spec: Spec) => {
  const { configuration: _, sources: __, ...others } = modelWith(spec).settings;
  return others;
};

const SHOWN: Record<Exclude<Field, Fixed>, Shown> = {
  bpfEnabled: { set: { bpfEnabled: true }, seenIn: settings },
  bpfServiceProxyIptablesCleanupEnabled: { scenario: "test/netns/proxy-conflict.test.ts" },
  bpfServiceProxyHealthzPort: { scenario: "src/agent/kube-proxy-compat.test.ts" },
  bpfExternalServiceMode: { scenario: "test/netns/service-direct.test.ts" },
  bpfDSROptoutCIDRs: { scenario: "test/netns/service-direct.test.ts" },
  bpfDataIfacePattern: { set: { bpfDataIfacePattern: "^odd$" }, seenIn: interfaces },
  bpfEnforceRPF: { scenario: "test/ebpf/packets.test.ts" },
  bpfDisableUnprivileged: { scenario: "test/ebpf/packets.test.ts" },
  bpfConnectTimeLoadBalancing: { scenario: "test/ebpf/sockets.test.ts" },
  bpfExcludeCIDRsFromNAT: { set: { bpfExcludeCIDRsFromNAT: ["10.96.0.10/32"] }, seenIn: services },
  bpfConntrackTimeouts: {
    set: { bpfConntrackTimeouts: { udpTimeout: "30s" } },
    seenIn: ({ bpfConntrackTimeouts }) => conntrackTimes(bpfConntrackTimeouts, () => undefined),
  },
  cgroupV2Path: { scenario: "src/operator/render/render-component.test.ts" },
  CgroupV2Path: { scenario: "src/operator/refusals.test.ts" },
  interfacePrefix: { set: { interfacePrefix: "eni" }, seenIn: rules },
  ipv6Support: { set: { ipv6Support: false }, seenIn: (spec) => nodeSysctls(modelWith(spec).settings.ipv6) },
  vxlanVNI: { set: { vxlanVNI: 7 }, seenIn: overlay },
  vxlanPort: { set: { vxlanPort: 8472 }, seenIn: overlay },
  vxlanMTU: { set: { vxlanMTU: 1300 }, seenIn: overlay },
  vxlanMTUV6: { set: { vxlanMTUV6: 1300 }, seenIn: settings },
  externalNodesList: { set: { externalNodesList: ["198.51.100.0/24"] }, seenIn: rules },
  serviceLoopPrevention: { set: { serviceLoopPrevention: "Reject" }, seenIn: rules },
  failsafeInboundHostPorts: { set: { failsafeInboundHostPorts: [{ protocol: "TCP", port: 2222 }] }, seenIn: rules },
  failsafeOutboundHostPorts: { set: { failsafeOutboundHostPorts: [{ protocol: "TCP", port: 2222 }] }, seenIn: rules },
  defaultEndpointToHostAction: { set: { defaultEndpointToHostAction: "Drop" }, seenIn: rules },
  workloadConntrackPercent: { scenario: "src/dataplane/nft/connection-limit.test.ts" },
  natOutgoingAddress: { set: { natOutgoingAddress: "192.0.2.77" }, seenIn: rules },
  deviceRouteSourceAddress: { scenario: "test/nft/overlay.test.ts" },
  deviceRouteSourceAddressIPv6: { scenario: "test/nft/overlay.test.ts" },
  natOutgoingExclusions: { set: { natOutgoingExclusions: "IPPoolsAndHostIPs" }, seenIn: rules },
  policySyncPathPrefix: { scenario: "test/netns/policy-sidecar.test.ts" },
  logSeverityScreen: { set: { logSeverityScreen: "Debug" }, seenIn: logged },
  mtuIfacePattern: { set: { mtuIfacePattern: "^storage" }, seenIn: mtu },
  healthPort: { scenario: "src/operator/render/render-component.test.ts" },
};

const TABLE = DATAPLANE_SETTINGS as Record<string, Setting>;
type Fixed = "bpfHostConntrackBypass" | "floatingIPs" | "healthEnabled";
const isFixed = (field: string) => TABLE[field]?.fixed !== undefined;
const SEEN = Object.entries(SHOWN).flatMap(([field, shown]) => ("set" in shown ? [[field, shown] as const] : []));
const SCENARIOS = Object.entries(SHOWN).flatMap(([field, shown]) =>
  "scenario" in shown ? [[field, shown.scenario] as const] : [],
);

/** Whether what is seen is another with the field set than without. */
const makesADifference = ({ set, seenIn }: Extract<Shown, { set: Spec }>) =>
  JSON.stringify(seenIn(set)) !== JSON.stringify(seenIn({}));

describe("every field of DataplaneConfiguration", () => {
  it("of the table is shown here, and no other", () => {
    const free = Object.keys(TABLE).filter((field) => !isFixed(field));
    expect(Object.keys(SHOWN).sort()).toEqual(free.sort());
  });

  it.each(SEEN)("%s makes a difference", (field, shown) => {
    expect(Object.keys(shown.set)).toEqual([field]);
    expect(makesADifference(shown)).toBe(true);
  });

  it.each(SCENARIOS)("%s is set by %s", (field, file) => {
    expect(readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")).toContain(field);
  });

  it("that were planted and did nothing would fail", () => {
    const planted = { bpfProfiling: "Enabled" } as Spec;
    for (const seenIn of [rules, services, overlay, interfaces, mtu, logged, settings]) {
      expect(makesADifference({ set: planted, seenIn })).toBe(false);
    }
    const table = { ...TABLE, bpfProfiling: { schema: {} } };
    expect(Object.keys(table).filter((field) => !isFixed(field))).not.toEqual(Object.keys(SHOWN));
  });

  it("that has one value, or is refused, is refused by name when it is written", () => {
    const object = (spec: object): KubeObject => ({
      ...{ apiVersion: "vendor.io/v3", kind: "DataplaneConfiguration", metadata: { name: "default" } },
      spec,
    });
    const codes = (spec: object) => validateObject(object(spec)).map(({ code }) => code);
    const other = (value: unknown) => (typeof value === "boolean" ? !value : "Enabled");
    for (const [field, { fixed }] of Object.entries(TABLE)) {
      if (!fixed) continue;
      const value = other(fixed.value);
      expect([field, codes({ [field]: value })]).toEqual([field, ["VALUE_WITHOUT_EFFECT"]]);
      expect([field, codes({ [field]: fixed.value })]).toEqual([field, []]);
    }
    const refused = Object.keys(REFUSED_FIELDS.dataplaneConfiguration ?? {}).map((path) => path.slice("spec.".length));
    for (const field of refused) {
      const [parent = "", child] = field.split(".");
      const spec = { [parent]: child === undefined ? "any" : { [child]: "1s" } };
      expect([field, codes(spec)]).toEqual([field, ["FIELD_REFUSED"]]);
    }
    console.info(
      `DataplaneConfiguration: ${SEEN.length} fields seen to make a difference, ${SCENARIOS.length} by a scenario of a real node or render, ` +
        `${Object.keys(TABLE).filter(isFixed).length} with one value, ${refused.length} refused by name`,
    );
  });
});
