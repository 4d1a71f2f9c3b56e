import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { bgpConfiguration } from "../../src/api/resources/bgp-configuration.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf, type Resource } from "../../src/api/resources/resource.ts";
import { ENDPOINT_SLICES, SERVICES } from "../../src/cluster/kinds.ts";
import { inside, until, whyNoNodes } from "../agent/node-lab.ts";
import { Actor } from "./actor.ts";
import { type AttackLab, attackLab, PLANES } from "./packet-lab.ts";

const why = whyNoNodes();
const stored = (resource: Resource) => placesOf(resource, vendorNames).stored;
const SETTINGS = stored(dataplaneConfiguration);
const CONFIGURATIONS = stored(bgpConfiguration);
/** Advertised to routers; the second address is a Service's. */
const RANGE = { cidr: "203.0.113.0/24", unused: "203.0.113.9", served: "203.0.113.10" };
/** Where the node's routes lead as well, and nothing is advertised. */
const BEYOND = "198.51.100.9";
const PORT = 7777;

/**
 * A machine outside has a route to the range by the first node, as a router has that learned it. The first node's own routes lead on to the second, as a
 * default route does; there both addresses are heard.
 */
describe.skipIf(why !== undefined).each(PLANES)(
  `packets to an advertised range, $plane${why ? ` (${why})` : ""}`,
  ({ bpf }) => {
    let lab: AttackLab;
    let beyond: Actor;
    let sent = 0;
    beforeAll(async () => {
      lab = await attackLab(bpf);
      const [one, two] = lab.nodes.nodes;
      const at = async (netns: string, ...command: string[]) => {
        const { ok, output } = await inside(netns, ...(command as [string, ...string[]]));
        expect(ok, output).toBe(true);
      };
      // Else the outside would learn of the shorter way.
      await at(one!.netns.name, "sh", "-c", "for f in /proc/sys/net/ipv4/conf/*/send_redirects; do echo 0 > $f; done");
      for (const net of [RANGE.cidr, "198.51.100.0/24"]) {
        await at(lab.nodes.outside.netns.name, "ip", "route", "add", net, "via", one!.addresses.v4);
        await at(one!.netns.name, "ip", "route", "add", net, "via", two!.addresses.v4);
      }
      for (const address of [RANGE.unused, BEYOND]) {
        await at(two!.netns.name, "ip", "address", "add", `${address}/32`, "dev", "lo");
      }
      beyond = new Actor(two!.netns);
      await beyond.udp("beyond", 4, PORT);
      await lab.actors.outside.udp("outside", 4);
      await lab.actors.victim.udp("served", 4, PORT);
    });
    afterAll(async () => {
      await beyond?.stop();
      await lab?.close();
    });

    /** Whether a datagram to the unused address passes the first node: one to the address beyond, sent after it, does. */
    async function passes(): Promise<boolean> {
      const [text, fence] = [`unused ${sent}`, `beyond ${sent++}`];
      await lab.actors.outside.send("outside", RANGE.unused, PORT, text);
      await until(
        async () => {
          await lab.actors.outside.send("outside", BEYOND, PORT, fence);
          return (await beyond.heard("beyond")).includes(fence);
        },
        () => "what is beyond the node is not reached",
      );
      return (await beyond.heard("beyond")).includes(text);
    }
    const becomes = (wanted: boolean) => expect.poll(passes, { timeout: 60_000 }).toBe(wanted);
    const prevention = (serviceLoopPrevention: string | null) =>
      lab.nodes.client.patch(
        SETTINGS,
        { name: "default" },
        { type: "merge", patch: { spec: { serviceLoopPrevention } } },
      );

    it("go no further than the node while the range is advertised, unless it is turned off", async () => {
      expect(await passes()).toBe(true);
      await lab.nodes.client.create(CONFIGURATIONS, {
        ...{ apiVersion: `${CONFIGURATIONS.group}/${CONFIGURATIONS.version}`, kind: CONFIGURATIONS.kind },
        ...{ metadata: { name: "default" }, spec: { serviceLoadBalancerIPs: [{ cidr: RANGE.cidr }] } },
      });
      await becomes(false);
      await prevention("Disabled");
      await becomes(true);
      await prevention("Reject");
      await becomes(false);
      await prevention(null);
      await becomes(false);
    });

    it("reach the Service that has the address", async () => {
      await (bpf ? serviceOfVictim() : proxyToVictim());
      const hears = async () => {
        await lab.actors.outside.send("outside", RANGE.served, PORT, "served");
        return (await lab.actors.victim.heard("served")).includes("served");
      };
      await expect.poll(hears, { timeout: 60_000 }).toBe(true);
      expect(await passes()).toBe(false);
    });

    async function serviceOfVictim(): Promise<void> {
      const metadata = { name: "served", namespace: "default" };
      const port = { name: "", protocol: "UDP", port: PORT };
      await lab.nodes.client.create(SERVICES, {
        ...{ apiVersion: "v1", kind: "Service", metadata },
        spec: {
          ...{ type: "ClusterIP", clusterIP: "10.96.0.60", clusterIPs: ["10.96.0.60"], externalIPs: [RANGE.served] },
          ports: [{ ...port, targetPort: PORT }],
        },
      });
      await lab.nodes.client.create(ENDPOINT_SLICES, {
        ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
        metadata: { ...metadata, labels: { "kubernetes.io/service-name": metadata.name } },
        ports: [port],
        endpoints: [{ addresses: [lab.address("victim", 4)], conditions: { ready: true } }],
      });
    }

    /** What kube-proxy makes of such a Service. */
    async function proxyToVictim(): Promise<void> {
      const rules = [
        "add table ip proxy",
        "add chain ip proxy services { type nat hook prerouting priority -100; }",
        `add rule ip proxy services ip daddr ${RANGE.served} udp dport ${PORT} dnat to ${lab.address("victim", 4)}:${PORT}`,
      ];
      const { ok, output } = await inside(lab.nodes.nodes[0]!.netns.name, "nft", rules.join("; "));
      expect(ok, output).toBe(true);
    }
  },
);
