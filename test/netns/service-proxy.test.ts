import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ServicePort } from "../../src/calc/model.ts";
import { noteAffinities, notedAffinities } from "../../src/dataplane/kube-proxy/proxy-affinities.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import {
  iptablesWriter,
  nftablesWriter,
  type ServiceRulesWriter,
} from "../../src/local/runtime/netns/kube-proxy/service-writers.ts";
import { deleteStaleConntrack } from "../../src/local/runtime/netns/kube-proxy/stale-conntrack.ts";
import { whyNoPacketFilters } from "../kernel/why-not.ts";
import {
  backend,
  CLUSTER_CIDRS,
  connectFrom,
  kernel,
  NODE_ADDRESSES,
  rowsOf,
  type ServiceLab,
  servicePort,
  startServiceLab,
} from "./service-lab.ts";
import { askFrom } from "./sockets.ts";

const why = whyNoPacketFilters();
const node = { clusterCidrs: CLUSTER_CIDRS, addresses: NODE_ADDRESSES };

const SHAPES: [string, (lab: ServiceLab) => ServiceRulesWriter][] = [
  ["iptables-nft", ({ run }) => iptablesWriter(run, node, "iptables-nft")],
  ["iptables-legacy", ({ run }) => iptablesWriter(run, node, "iptables-legacy")],
  ["nftables", ({ node: netns }) => nftablesWriter(kernel.nft(netns), node)],
];

describe.skipIf(why).each(SHAPES)(`the service proxy's rules, written with %s${why ? `: ${why}` : ""}`, (_, open) => {
  let lab: ServiceLab;
  let writer: ServiceRulesWriter;
  const write = (...rows: ServicePort[]) => writer.write(rowsOf(...rows));
  /** Who answered, and whom they saw; ten times, so that every backend has its turn. */
  const answers = async (netns: Netns, host: string, port: number, protocol: "tcp" | "udp" = "tcp") => {
    const asked = Array.from({ length: 10 }, () => askFrom(netns, { host, port, protocol }));
    const found = (await Promise.all(asked)).map((one) => (one ? `${one.host} saw ${one.client}` : "nobody"));
    return [...new Set(found)].sort();
  };

  beforeAll(async () => {
    lab = await startServiceLab();
  });
  beforeEach(() => {
    writer = open(lab);
  });
  afterEach(() => writer.close());
  afterAll(() => lab?.close());

  it.each([
    [4, "10.96.0.10", "10.66.1.1", "10.66.1.11"],
    [6, "fd96::10", "fd66:0:0:1::1", "fd66:0:0:1::11"],
  ] as const)(
    "a pod reaches every backend at the cluster address, and itself looking like the node (IPv%s)",
    async (family, host, gateway, own) => {
      await write(servicePort({ family }), servicePort({ family, protocol: 17 }));

      for (const protocol of ["tcp", "udp"] as const) {
        const expected = [`here saw ${gateway}`, `there saw ${own}`];
        await expect.poll(() => answers(lab.pods.here, host, 80, protocol)).toEqual(expected);
      }
    },
  );

  it("from outside of the pods' networks the cluster address leads to them too, looking like the node", async () => {
    await write(servicePort());
    await expect
      .poll(() => answers(lab.client, "10.96.0.10", 80))
      .toEqual(["here saw 10.66.1.1", "there saw 10.66.2.1"]);
  });

  it.each([
    [4, "192.0.2.1", "10.66.1.1", "10.66.2.1"],
    [6, "2001:db8:77::1", "fd66:0:0:1::1", "fd66:0:0:2::1"],
  ] as const)(
    "a node port is answered from outside, and from the node itself (IPv%s)",
    async (family, host, one, other) => {
      await write(servicePort({ family, nodePort: 30080 }), servicePort({ family, protocol: 17, nodePort: 30080 }));
      const expected = [`here saw ${one}`, `there saw ${other}`];
      for (const protocol of ["tcp", "udp"] as const) {
        await expect.poll(() => answers(lab.client, host, 30080, protocol)).toEqual(expected);
      }
      await expect.poll(() => answers(lab.node, host, 30080)).toEqual(expected);
    },
  );

  it("an external address is answered like a node port", async () => {
    await write(servicePort({ externalAddresses: ["203.0.113.9"] }));
    await expect
      .poll(() => answers(lab.client, "203.0.113.9", 80))
      .toEqual(["here saw 10.66.1.1", "there saw 10.66.2.1"]);
  });

  it("a load balancer's address answers only those in its source ranges", async () => {
    await write(servicePort({ loadBalancerAddresses: ["203.0.113.10"], sourceRanges: ["192.0.2.0/24"] }));
    await expect.poll(() => connectFrom(lab.client, "203.0.113.10", 80)).toBe("connected");
    expect(await connectFrom(lab.stranger, "203.0.113.10", 80)).toBe("silence");
  });

  it("with a Local policy outside, only backends of this node answer, and see who asks; pods reach them all", async () => {
    const local = { externalLocal: true, localBackends: [backend("here", 4)] };
    await write(servicePort({ nodePort: 30080, ...local }));
    await expect.poll(() => answers(lab.client, "192.0.2.1", 30080)).toEqual(["here saw 192.0.2.2"]);
    const inside = async () => (await answers(lab.pods.there, "192.0.2.1", 30080)).map((one) => one.split(" ")[0]);
    await expect.poll(inside).toEqual(["here", "there"]);
  });

  it("with a Local policy outside and no backend here, packets from outside are dropped without a word", async () => {
    await write(servicePort({ nodePort: 30080, externalLocal: true, clusterBackends: [backend("there", 4)] }));
    expect(await connectFrom(lab.client, "192.0.2.1", 30080)).toBe("silence");
    await expect.poll(() => answers(lab.pods.here, "192.0.2.1", 30080)).toEqual(["there saw 10.66.1.11"]);
    await expect.poll(() => answers(lab.node, "192.0.2.1", 30080)).toEqual(["there saw 10.66.2.1"]);
  });

  it("with a Local policy inside, only backends of this node answer", async () => {
    await write(servicePort({ internalLocal: true, localBackends: [backend("here", 4)] }));
    await expect.poll(() => answers(lab.pods.there, "10.96.0.10", 80)).toEqual(["here saw 10.66.2.12"]);
  });

  it("a service nobody answers is refused at once, inside and outside", async () => {
    await write(servicePort({ nodePort: 30080, clusterBackends: [], anyBackends: false }));
    expect(await connectFrom(lab.pods.here, "10.96.0.10", 80)).toBe("ECONNREFUSED");
    expect(await connectFrom(lab.node, "10.96.0.10", 80)).toBe("ECONNREFUSED");
    expect(await connectFrom(lab.client, "192.0.2.1", 30080)).toBe("ECONNREFUSED");
  });

  it("with affinity a client stays with its backend", async () => {
    await write(servicePort({ affinitySeconds: 60, nodePort: 30080 }));
    const first = await askFrom(lab.client, { host: "192.0.2.1", port: 30080 });
    expect(first).toBeDefined();
    expect(await answers(lab.client, "192.0.2.1", 30080)).toEqual([`${first?.host} saw ${first?.client}`]);
  });

  it.each([
    [4, { client: ["192.0.2.2", "192.0.2.1"], stranger: ["198.51.100.2", "198.51.100.1"] }],
    [6, { client: ["2001:db8:77::2", "2001:db8:77::1"], stranger: ["2001:db8:88::2", "2001:db8:88::1"] }],
  ] as const)(
    "whom it sends to which backend can be told it, and read (IPv%s)",
    async (family, { client, stranger }) => {
      const service = servicePort({ family, affinitySeconds: 60, nodePort: 30080 });
      const place = { kernel, netns: lab.node };
      const affinities = [
        { service, client: client[0], backend: backend("here", family) },
        { service, client: stranger[0], backend: backend("there", family) },
      ];
      await write();
      await noteAffinities(place, affinities);
      expect(await notedAffinities(place, [service])).toEqual([]);
      await write(service);
      await noteAffinities(place, affinities);
      expect(await notedAffinities(place, [service])).toEqual(affinities);
      const answering = async (netns: Netns, host: string) => (await askFrom(netns, { host, port: 30080 }))?.host;
      expect(await answering(lab.client, client[1])).toBe("here");
      expect(await answering(lab.stranger, stranger[1])).toBe("there");
    },
  );

  it("a backend that goes and a service that goes are forgotten, and what is written twice is written once", async () => {
    const udp = servicePort({ protocol: 17 });
    await write(servicePort({ affinitySeconds: 60 }), udp);
    await expect.poll(async () => (await answers(lab.pods.there, "10.96.0.10", 80)).length).toBe(1);
    await write(servicePort({ clusterBackends: [backend("here", 4)] }), udp);
    await expect.poll(() => answers(lab.pods.there, "10.96.0.10", 80)).toEqual(["here saw 10.66.2.12"]);
    await write(udp);
    expect(await connectFrom(lab.pods.there, "10.96.0.10", 80)).not.toBe("connected");
    const before = await rulesOf(lab);
    expect(before).not.toMatch(/shop\/web:http.*tcp|tcp.*shop\/web:http/);
    await write(udp);
    expect(await rulesOf(lab)).toBe(before);
  });

  it("flows of UDP to a backend that went are forgotten, so that the client reaches another", async () => {
    const row = (...clusterBackends: ServicePort["clusterBackends"]) => servicePort({ protocol: 17, clusterBackends });
    await write(row(backend("there", 4)));
    const conntrack = kernel.conntrack(lab.node);
    await deleteStaleConntrack(conntrack, [row(backend("there", 4))]);
    await expect.poll(() => answers(lab.client, "10.96.0.10", 80, "udp")).toEqual(["there saw 10.66.2.1"]);
    const there = async () =>
      (await conntrack.list()).filter(
        ({ original, reply }) =>
          original.protocol === 17 && original.destination === "10.96.0.10" && reply.source === "10.66.2.12",
      ).length;
    try {
      expect(await there()).toBeGreaterThan(0);
      expect(await deleteStaleConntrack(conntrack, [row(backend("there", 4))])).toBe(0);
      expect(await deleteStaleConntrack(conntrack, [row(backend("here", 4))])).toBeGreaterThan(0);
      expect(await there()).toBe(0);
    } finally {
      conntrack.close();
    }
  });

  it("flows of UDP to the number of a node port are forgotten whoever they are with, as kube-proxy does, but not without a backend", async () => {
    const row = (...clusterBackends: ServicePort["clusterBackends"]) =>
      servicePort({ protocol: 17, nodePort: 8080, clusterBackends });
    const conntrack = kernel.conntrack(lab.node);
    // The pod's own port is what the client asks: nothing of it is a node port of this node.
    const withPod = async () =>
      (await conntrack.list()).filter(
        ({ original }) => original.protocol === 17 && original.destination === "10.66.2.12",
      ).length;
    try {
      await write(row(backend("here", 4)));
      await expect.poll(() => answers(lab.client, "10.66.2.12", 8080, "udp")).toEqual(["there saw 192.0.2.2"]);
      expect(await deleteStaleConntrack(conntrack, [row()])).toBe(0);
      expect(await withPod()).toBeGreaterThan(0);
      expect(await deleteStaleConntrack(conntrack, [row(backend("here", 4))])).toBeGreaterThan(0);
      expect(await withPod()).toBe(0);
    } finally {
      conntrack.close();
    }
  });

  it("rules somebody took away are noticed and written again", async () => {
    await write(servicePort());
    expect(await writer.areRemoved()).toBe(false);
    await lab.run(["nft", "flush", "ruleset"]);
    for (const table of ["nat", "filter", "mangle"]) await removeLegacy(lab, table);
    expect(await writer.areRemoved()).toBe(true);
    await write(servicePort());
    expect(await writer.areRemoved()).toBe(false);
    await expect.poll(async () => (await answers(lab.pods.here, "10.96.0.10", 80)).length).toBe(2);
  });
});

async function removeLegacy({ run }: ServiceLab, table: string): Promise<void> {
  await run(["iptables-legacy", "-t", table, "-F"]);
  await run(["iptables-legacy", "-t", table, "-X"]);
}

async function rulesOf({ run }: ServiceLab): Promise<string> {
  const texts = await Promise.all([
    run(["iptables-legacy-save"]),
    run(["iptables-nft-save"]),
    run(["nft", "list", "ruleset"]),
  ]);
  return texts
    .map(({ out }) => out)
    .join("\n")
    .replace(/^#.*$/gm, "")
    .replace(/\[\d+:\d+\]/g, "")
    .replace(/counter packets \d+ bytes \d+/g, "counter")
    .replace(/elements = \{[^}]*expires[^}]*\}/g, "");
}
