import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import { FlowLab, total } from "./flow-lab.ts";

const reason = whyNoNftables();
const UDP = 17;
const TCP = 6;
/** Of IP and UDP. */
const HEADERS = { 4: 28, 6: 48 } as const;

describe.skipIf(reason)(`what nftables counts for flow logs${reason ? ` (${reason})` : ""}`, () => {
  let lab: FlowLab;
  beforeEach(async () => {
    lab = await FlowLab.make();
    lab.addPod("a", { app: "a" });
    lab.addPod("b", { app: "b" });
    await lab.settle();
  });
  afterEach(async () => {
    await lab.stop();
  });

  const order = (from: string, what: { do: string; [field: string]: unknown }) => lab.who(from).order(what);

  it.each([4, 6] as const)("UDP of IPv%i is what was sent, to the packet and the byte, both ways", async (family) => {
    await lab.next();
    const address = lab.addressOf("b", family);
    const source = lab.addressOf("a", family);
    const bytes = 100;
    await order("a", { do: "datagrams", address, port: 80, count: 500, bytes, answered: true });
    await order("a", { do: "datagrams", address, port: 8080, count: 300, bytes });
    await order("outside", { do: "datagrams", address, port: 9000, count: 200, bytes, answered: true });
    const sums = await lab.next();
    const size = bytes + HEADERS[family];
    const of = { source, destination: address, protocol: UDP, verdict: "Allow" } as const;
    expect(total(sums, { ...of, destinationPort: 80 })).toEqual({
      ...{ packets: 500, bytes: 500 * size, replyPackets: 500, replyBytes: 500 * size, started: 1, ended: 0 },
    });
    expect(total(sums, { ...of, destinationPort: 8080 })).toMatchObject({
      packets: 300,
      bytes: 300 * size,
      replyPackets: 0,
    });
    const outside = { ...of, source: lab.addressOf("outside", family), destinationPort: 9000 };
    expect(total(sums, outside)).toMatchObject({ packets: 200, replyPackets: 200, started: 1 });
    // A pod without policy is allowed by the profile of its namespace, at both ends.
    const [sum] = sums.filter(({ destinationPort }) => destinationPort === 80);
    expect(sum).toMatchObject({
      egress: ["kns.default;egress;0"],
      ingress: ["kns.default;ingress;0"],
      ...{ service: undefined, reason: undefined, live: 1 },
    });
    expect(await lab.next()).toEqual([]);
  });

  it("counts each connection of TCP: closed, reset, short, and again with the same ports", async () => {
    await lab.next();
    const address = lab.addressOf("b");
    const common = { do: "connections", address, bytes: 1_000 };
    expect(await order("a", { ...common, port: 80, count: 200 })).toBe(200);
    expect(await order("a", { ...common, port: 8080, count: 200, reset: true })).toBe(200);
    // The kernel replaces an entry that was reset: no sweep sees it.
    expect(await order("a", { ...common, port: 9000, count: 200, reset: true, sourcePort: 45_678 })).toBe(200);
    const sums = await lab.next();
    for (const destinationPort of [80, 8080, 9000]) {
      const of = total(sums, { destinationPort, protocol: TCP, verdict: "Allow" });
      expect(of.started, `port ${destinationPort}`).toBe(200);
      expect(of.bytes).toBeGreaterThan(200 * 1_000);
      expect(of.replyBytes).toBeGreaterThan(200 * 1_000);
    }
    expect(total(sums, { destinationPort: 9000 }).ended).toBe(199);
  });

  it("names the Service that was asked for, and the pod that answered", async () => {
    const service = { name: "web", namespace: "default" };
    lab.set(
      {
        ...{ apiVersion: "v1", kind: "Service", metadata: service },
        spec: {
          clusterIP: "10.96.0.7",
          clusterIPs: ["10.96.0.7"],
          ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "UDP" }],
        },
      } as never,
      {
        ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" },
        metadata: { ...service, name: "web-1", labels: { "kubernetes.io/service-name": "web" } },
        ...{ addressType: "IPv4", ports: [{ name: "http", port: 8080, protocol: "UDP" }] },
        endpoints: [{ addresses: [lab.addressOf("b")], conditions: { ready: true } }],
      } as never,
    );
    await lab.settle();
    // What kube-proxy does for it.
    await lab.nft.run(
      `add table ip kube\nadd chain ip kube pre { type nat hook prerouting priority -100; }\nadd rule ip kube pre ip daddr 10.96.0.7 udp dport 80 dnat to ${lab.addressOf("b")}:8080`,
    );
    await lab.next();
    await order("a", { do: "datagrams", address: "10.96.0.7", port: 80, count: 50, bytes: 10, answered: true });
    const sums = await lab.next();
    expect(sums).toHaveLength(1);
    expect(sums[0]).toMatchObject({
      ...{ source: lab.addressOf("a"), destination: lab.addressOf("b"), destinationPort: 8080 },
      ...{ service: "default/web:http", packets: 50, replyPackets: 50, started: 1 },
    });
  });

  it("counts from the beginning on: what was there before is not added, nor said to begin", async () => {
    const address = lab.addressOf("b");
    const held = { do: "datagrams", address, port: 80, bytes: 10, answered: true, sourcePort: 40_001 };
    await order("a", { ...held, count: 100 });
    await lab.next();
    await order("a", { ...held, count: 7 });
    const sums = await lab.next();
    expect(total(sums, { destinationPort: 80 })).toMatchObject({ packets: 7, replyPackets: 7, started: 0 });
  });

  it("counts what rules drop, and names the rule", async () => {
    const kind = vendorNames.kinds.globalNetworkPolicy.kind;
    lab.setStored(kind, "default.web", {
      ...{ tier: "default", selector: "app == 'b'", types: ["Ingress"] },
      ingress: [
        { action: "Deny", protocol: "UDP", destination: { ports: [9000] } },
        { action: "Allow", protocol: "UDP", destination: { ports: [80] } },
      ],
    });
    await lab.settle();
    await lab.next();
    for (const family of [4, 6] as const) {
      const address = lab.addressOf("b", family);
      await order("a", { do: "datagrams", address, port: 80, count: 10, bytes: 10, answered: true });
      await order("a", { do: "datagrams", address, port: 9000, count: 40 + family, bytes: 10 });
      await order("outside", { do: "datagrams", address, port: 8080, count: 60 + family, bytes: 10 });
    }
    const sums = await lab.next();
    for (const family of [4, 6] as const) {
      const destination = lab.addressOf("b", family);
      const size = 10 + HEADERS[family];
      const byRule = {
        destination,
        source: lab.addressOf("a", family),
        destinationPort: 9000,
        verdict: "Deny" as const,
      };
      expect(total(sums, byRule)).toMatchObject({ packets: 40 + family, bytes: (40 + family) * size });
      expect(sums.find((sum) => sum.destination === destination && sum.destinationPort === 9000)).toMatchObject({
        ...{ reason: "policy_workload_ingress", egress: ["kns.default;egress;0"] },
        ingress: ["gnp/default.web;ingress;0"],
      });
      const byEnd = {
        destination,
        source: lab.addressOf("outside", family),
        destinationPort: 8080,
        verdict: "Deny" as const,
      };
      expect(total(sums, byEnd)).toMatchObject({ packets: 60 + family });
      expect(sums.find((sum) => sum.destination === destination && sum.destinationPort === 8080)).toMatchObject({
        ...{ reason: "policy_workload_ingress", egress: undefined, ingress: ["default;end"] },
      });
      expect(total(sums, { destination, destinationPort: 80, verdict: "Allow" })).toMatchObject({ packets: 10 });
    }
    // What was read is not read again.
    expect((await lab.next()).filter(({ verdict }) => verdict === "Deny")).toEqual([]);
  });
});
