import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { until, whyNoNodes } from "../agent/node-lab.ts";
import { ENDPOINT_SLICES, sliceOf, writeStatus } from "./attack-lab.ts";
import { type AttackLab, attackLab, type Member, PLANES } from "./packet-lab.ts";

const why = whyNoNodes();
const FULL = process.env["FLOOD"] === "full";
/** More than the tables hold; and, in a share of one percent, several times what one pod may open. */
const FLOOD = FULL ? 600_000 : 12_000;
const PERCENT = FULL ? 25 : 1;
const FROM_PORTS = FULL ? 16 : 4;
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const VIP = "10.96.0.9";
const PORT = 8080;
const CONNECTIONS = 20;

/** One pod opens as many connections as it can; `near`, on its node, has connections to a Service. */
describe.skipIf(why !== undefined).each(PLANES)(`a flood from one pod, $plane${why ? ` (${why})` : ""}`, ({ bpf }) => {
  let lab: AttackLab;
  beforeAll(async () => {
    lab = await attackLab(bpf);
    const { nodes, pods } = lab;
    await lab.actors.victim.echo(PORT);
    await nodes.client.patch(
      SETTINGS,
      { name: "default" },
      { type: "merge", patch: { spec: { workloadConntrackPercent: PERCENT } } },
    );
    for (const node of nodes.nodes) {
      const settings = () => node.vendor("node", "show", "settings");
      await until(async () => new RegExp(`workloadConntrackPercent +${PERCENT}\\b`).test(await settings()), settings);
    }
    await writeStatus(nodes, pods.victim);
    if (bpf) await makeService();
    else await translateAsKubeProxy();
    await until(
      async () => lab.actors.near.connect("first", VIP, PORT, 500),
      () => "the Service does not answer",
    );
  });
  afterAll(() => lab?.close());

  const first = () => lab.nodes.nodes[0]!;
  const problems = () => first().vendor("node", "show", "problems");

  async function makeService(): Promise<void> {
    const { client } = lab.nodes;
    await client.create(ENDPOINT_SLICES, sliceOf("web", "web", lab.pods.victim.addresses.slice(0, 1), PORT));
    await client.create(SERVICES, {
      ...{ apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "default" } },
      spec: {
        ...{ type: "ClusterIP", clusterIP: VIP, clusterIPs: [VIP], ipFamilies: ["IPv4"] },
        ports: [{ name: "http", port: PORT, protocol: "TCP", targetPort: PORT }],
      },
    });
  }

  /** kube-proxy is not in this lab. */
  async function translateAsKubeProxy(): Promise<void> {
    const nft = realKernel().nft(first().netns);
    const rule = `ip daddr ${VIP} tcp dport ${PORT} dnat to ${lab.address("victim", 4)}`;
    await nft.run(
      `table ip proxy { chain services { type nat hook prerouting priority -100; policy accept; ${rule}; }; }`,
    );
    nft.close();
  }

  async function connect(from: Member, name: string): Promise<boolean> {
    return lab.actors[from].connect(name, VIP, PORT, 5_000);
  }

  /** Whether what is said comes back. */
  async function lives(from: Member, name: string): Promise<boolean> {
    const actor = lab.actors[from];
    const before = (await actor.received(name)).length;
    await actor.write(name, "still there?");
    const end = Date.now() + 5_000;
    while (Date.now() < end) {
      if ((await actor.received(name)).length > before) return true;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return false;
  }

  it("leaves all connections of others, lets them open new ones, and is named", async () => {
    const names = Array.from({ length: CONNECTIONS }, (_, at) => `service ${at}`);
    for (const name of names) expect(await connect("near", name)).toBe(true);
    expect(await connect("attacker", "own")).toBe(true);
    for (const name of names) expect(await lives("near", name)).toBe(true);

    const began = performance.now();
    const sent = await lab.actors.attacker.flood(4, lab.address("far", 4), FLOOD, FROM_PORTS);
    const seconds = (performance.now() - began) / 1000;
    const alive: string[] = [];
    for (const name of names) if (await lives("near", name)) alive.push(name);
    const opened: string[] = [];
    for (const name of names) if (await connect("near", `new ${name}`)) opened.push(name);
    process.stdout.write(
      `${bpf ? "eBPF" : "nftables"}: ${sent} connections of one pod in ${seconds.toFixed(1)} s: ` +
        `${alive.length} of ${CONNECTIONS} service connections of another alive, ${opened.length} of ${CONNECTIONS} new ones opened\n`,
    );
    expect(alive).toEqual(names);
    expect(opened).toEqual(names);
    expect(await lives("attacker", "own")).toBe(true);

    await until(async () => /pod default\/attacker +WORKLOAD_CONNTRACK_LIMIT/.test(await problems()), problems);
    expect((await problems()).match(/WORKLOAD_CONNTRACK_LIMIT/g)).toHaveLength(1);
    const counters = await first().vendor("node", "show", "counters");
    expect(counters).toMatch(
      bpf ? /drop-workload-limit/ : /the pod (?:has its share of connections|opens connections too fast)/,
    );
    // The receiving node is not the flood's either.
    expect(await lab.nodes.nodes[1]!.vendor("node", "show", "problems")).not.toContain("WORKLOAD_CONNTRACK_LIMIT");
  });
});
