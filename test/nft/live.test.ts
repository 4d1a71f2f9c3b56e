import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import { Lab } from "./lab.ts";
import type { Target } from "./lab-pod.ts";

const reason = whyNoNftables();

/** `from -> to` and whether it should get there. */
type Row = [from: string, to: string, protocol: Target["protocol"], port: number, allowed: boolean];

describe.skipIf(reason)(`the nftables data plane, with packets${reason ? ` (${reason})` : ""}`, () => {
  let lab: Lab;
  beforeEach(async () => {
    lab = new Lab();
    lab.addPod("a", { app: "a" });
    lab.addPod("b", { app: "b" }, [{ name: "web", containerPort: 8080, protocol: "TCP" }]);
    await lab.settle();
  });
  afterEach(async () => {
    await lab.stop();
  });

  /** All at once, both families. */
  async function seen(rows: Row[]): Promise<string[]> {
    const wrong = rows.flatMap(([from, to, protocol, port, allowed]) =>
      ([4, 6] as const).map(async (family) => {
        const target = { protocol, address: lab.addressOf(to, family), port };
        const got = await lab.who(from).reaches(target, allowed);
        return got === allowed
          ? []
          : [`${from} -> ${to} ${protocol}/${port} IPv${family}: ${got ? "allowed" : "denied"}`];
      }),
    );
    return (await Promise.all(wrong)).flat();
  }

  function policy(name: string, spec: object): void {
    lab.setStored(vendorNames.kinds.globalNetworkPolicy.kind, `default.${name}`, { tier: "default", ...spec });
  }

  it("carries everything where no policy says otherwise", async () => {
    expect(
      await seen([
        ["a", "b", "tcp", 80, true],
        ["b", "a", "udp", 80, true],
        ["a", "host", "tcp", 80, true],
        ["host", "a", "tcp", 80, true],
        ["outside", "a", "tcp", 80, true],
        ["outside", "host", "udp", 80, true],
        ["host", "outside", "tcp", 80, true],
      ]),
    ).toEqual([]);
  });

  it.each([
    ["a selector", { source: { selector: "app == 'a'" } }, [["outside", "b", "udp", 80, false]]],
    [
      "a port",
      { protocol: "TCP", destination: { ports: [80] } },
      [
        ["a", "b", "tcp", 8080, false],
        ["a", "b", "udp", 80, false],
      ],
    ],
    ["a range of ports", { protocol: "TCP", destination: { ports: ["79:81"] } }, [["a", "b", "tcp", 8080, false]]],
    ["all but some ports", { protocol: "TCP", destination: { notPorts: [8080] } }, [["a", "b", "tcp", 8080, false]]],
    ["prefixes", { source: { nets: ["10.9.0.0/24", "fd09::/64"] } }, [["outside", "b", "tcp", 80, false]]],
    ["no protocol but one", { notProtocol: "UDP" }, [["a", "b", "udp", 80, false]]],
  ] as [string, object, Row[]][])(
    "lets in what a rule with %s allows, and nothing else",
    async (_what, rule, denied) => {
      policy("only", { selector: "app == 'b'", types: ["Ingress"], ingress: [{ action: "Allow", ...rule }] });
      await lab.settle();
      expect(
        await seen([
          ["a", "b", "tcp", 80, true],
          ["host", "b", "tcp", 80, true],
          ["b", "a", "tcp", 80, true],
          ...denied,
        ]),
      ).toEqual([]);
    },
  );

  it("lets in by the name of a port", async () => {
    policy("named", {
      selector: "app == 'b'",
      types: ["Ingress"],
      ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: ["web"] } }],
    });
    await lab.settle();
    expect(
      await seen([
        ["a", "b", "tcp", 8080, true],
        ["a", "b", "tcp", 80, false],
        ["a", "b", "udp", 8080, false],
      ]),
    ).toEqual([]);
  });

  it("denies what leaves, passes from tier to tier, and asks profiles last", async () => {
    lab.setStored("Tier", "front", { order: 10, defaultAction: "Deny" });
    lab.setStored(vendorNames.kinds.globalNetworkPolicy.kind, "front.gate", {
      ...{ tier: "front", selector: "app == 'a'", types: ["Egress"] },
      egress: [
        { action: "Pass", protocol: "TCP" },
        { action: "Log", protocol: "UDP" },
        { action: "Deny", protocol: "UDP", destination: { selector: "app == 'b'" } },
        { action: "Allow", protocol: "UDP" },
      ],
    });
    await lab.settle();
    expect(
      await seen([
        ["a", "b", "tcp", 80, true],
        ["a", "b", "udp", 80, false],
        ["a", "outside", "udp", 80, true],
        ["a", "host", "udp", 80, true],
        ["b", "a", "udp", 80, true],
      ]),
    ).toEqual([]);
  });

  it("keeps a pod from speaking in another's name", async () => {
    const netlink = lab.kernel.netlink(lab.kernel.netns.open(lab.placeOf("a")));
    netlink.addAddress({ device: netlink.link("eth0")!.index, address: "10.9.0.99/32" });
    const outside = lab.kernel.netlink(lab.kernel.netns.open(lab.placeOf("outside")));
    expect(outside.routes().some(({ destination }) => destination === "10.9.0.0/24")).toBe(true);
    const told = { do: "udp", address: lab.addressOf("outside"), port: 80 };
    expect(await lab.who("a").order({ ...told, patience: 300, from: { address: "10.9.0.99", port: 0 } })).toBe(false);
    expect(await lab.who("a").order({ ...told, patience: 5_000 })).toBe(true);
    const { rows } = await lab.dataplane.show("counters");
    expect(rows.find(([what]) => what === "not an address of the pod")).toBeDefined();
  });

  it("host policy closes the node but for failsafe ports, and pods only where it says so", async () => {
    lab.setStored("DataplaneConfiguration", "default", { failsafeInboundHostPorts: [{ protocol: "TCP", port: 9000 }] });
    lab.setStored("HostEndpoint", "all", { node: "node-1", interfaceName: "*", expectedIPs: [HOST_ADDRESS] });
    lab.setStored(vendorNames.kinds.globalNetworkPolicy.kind, "default.node", {
      ...{ tier: "default", selector: "!has(app)", types: ["Ingress"] },
      ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: [80] } }],
    });
    await lab.settle();
    expect(
      await seen([
        ["outside", "host", "tcp", 80, true],
        ["outside", "host", "tcp", 9000, true],
        ["outside", "host", "tcp", 8080, false],
        ["outside", "a", "tcp", 8080, true],
        ["a", "host", "tcp", 8080, true],
      ]),
    ).toEqual([]);
  });

  it("policy for what the node forwards, and for before services are translated", async () => {
    lab.setStored("HostEndpoint", "uplink", { node: "node-1", interfaceName: "eth0", expectedIPs: [HOST_ADDRESS] });
    policy("forwarded", {
      ...{ selector: "!has(app)", types: ["Ingress"], applyOnForward: true },
      ingress: [{ action: "Deny", protocol: "TCP", destination: { ports: [8080] } }, { action: "Allow" }],
    });
    policy("early", {
      ...{ selector: "!has(app)", types: ["Ingress"], applyOnForward: true, preDNAT: true },
      ingress: [{ action: "Deny", protocol: "UDP", destination: { ports: [80] } }],
    });
    await lab.settle();
    expect(
      await seen([
        ["outside", "a", "tcp", 80, true],
        ["outside", "a", "tcp", 8080, false],
        ["outside", "a", "udp", 80, false],
        ["outside", "host", "udp", 80, false],
        ["b", "a", "tcp", 8080, true],
      ]),
    ).toEqual([]);
  });
});

const HOST_ADDRESS = "172.31.0.1";
