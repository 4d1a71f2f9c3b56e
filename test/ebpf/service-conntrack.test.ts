import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ServicePort, WorkloadEndpoint } from "../../src/calc/model.ts";
import { NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { type ServiceConnection, type ServiceState, serviceCases } from "../support/service-cases.ts";
import { spoken, tcp, udp, v4, v6 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { deltaOf } from "./packet-lab.ts";
import { ANY_CLIENT, type Became, routeTo, ServiceLab } from "./service-lab.ts";

/**
 * What Kubernetes' own proxies do with new connections, recorded from their tests, and what our programs do with the same packets. Where the
 * proxy hides a client behind the node's address so that answers come back, we keep the client's address: our answers find the way.
 */
const missing = whyNoPrograms() ?? (serviceCases() ? undefined : NO_CONFORMANCE_DATA);

/** Enough that one of two backends is not missed by chance, nor one of four: once in ten million runs. */
const TRIES = 60;

/** Besides what no data plane of ours does. */
const NOT_BY_PACKETS = {
  node: "the node's own sockets are translated when they connect, see sockets.test.ts",
  unallocated: "nobody tells us the service networks: an address of one that no service has is nobody's",
} as const;

describe.skipIf(missing)(`flows of the public proxies${missing ? ` (${missing})` : ""}`, () => {
  const states = serviceCases()?.states ?? [];
  let lab: ServiceLab;
  let kept = 0;
  let asked = 0;
  beforeAll(async () => {
    lab = await ServiceLab.open();
  });
  afterAll(() => lab?.close());

  it.each(states.map((state) => [state.id, state] as const))("%s", async (_id, state) => {
    for (const flow of state.flows) {
      if (flow.outOfScope || whyNotByPackets(flow, state)) continue;
      await arrange(lab, state, flow);
      const seen = Array.from({ length: triesFor(flow) }, (_, index) => ask(lab, flow, 20_000 + index));
      asked++;
      expect([flow.name, outcome(seen, flow)]).toEqual([flow.name, expected(flow)]);
      expect(seen.flatMap(({ wrong }) => wrong)).toEqual([]);
      if (flow.expect.result !== "backends") continue;
      for (const one of seen) expect([flow.name, sourceOf(one)]).toEqual([flow.name, wantedSource(one, flow)]);
      if (flow.expect.masquerade) kept++;
    }
  });

  it("all in scope were asked, and clients' addresses kept where the proxy hides them", () => {
    expect({ asked, kept }).toEqual({ asked: 219, kept: expect.any(Number) });
    expect(kept).toBeGreaterThan(40);
  });
});

function triesFor({ expect: wanted }: ServiceConnection): number {
  return wanted.result === "backends" && wanted.backends.length > 1 ? TRIES : 2;
}

function whyNotByPackets(
  { sourceKind, source, expect: { result }, destination }: ServiceConnection,
  { services }: ServiceState,
) {
  // A node that has the address it asks, and asks with it.
  if (sourceKind === "node" || source === destination) return NOT_BY_PACKETS.node;
  const isServed = [...services.values()].some(
    ({ clusterAddress, externalAddresses, loadBalancerAddresses }) =>
      clusterAddress === destination || [...externalAddresses, ...loadBalancerAddresses].includes(destination),
  );
  return result === "drop" && !isServed ? NOT_BY_PACKETS.unallocated : undefined;
}

/** The asking pod is behind one interface, pods of this node behind the other; the others are on another node. */
async function arrange(lab: ServiceLab, state: ServiceState, flow: ServiceConnection): Promise<void> {
  const services = [...state.services.values()];
  const [a, b] = deltaOf(ANY_CLIENT).endpoints.set as [WorkloadEndpoint, WorkloadEndpoint];
  const own = flow.sourceKind === "pod" ? [net(flow.source)] : [];
  const here = localBackends(services).filter((address) => !own.includes(address));
  const { podNets, nodeAddresses } = state.surroundings;
  await lab.serve(services, {
    change: {
      endpoints: {
        set: [
          { ...a, addresses: own },
          { ...b, addresses: here },
        ],
        remove: [],
      },
      routes: {
        set: [
          ...[...podNets, "10.0.0.0/8", "fd00::/8"].map((cidr) => routeTo(cidr, "remote-workload", "other")),
          ...nodeAddresses.map((address) => routeTo(net(address), "local-host", "here")),
        ],
        remove: [],
      },
    },
  });
}

function localBackends(services: readonly ServicePort[]): string[] {
  const all = services.flatMap(({ clusterBackends, localBackends }) => [...clusterBackends, ...localBackends]);
  return [...new Set(all.filter(({ local }) => local).map(({ address }) => net(address)))];
}

function ask(
  lab: ServiceLab,
  { protocol, source, destination, destinationPort, sourceKind }: ServiceConnection,
  port: number,
): Became {
  const payload = protocol === 6 ? tcp(port, destinationPort) : udp(port, destinationPort);
  const packet = source.includes(":") ? v6({ source, destination }, payload) : v4({ source, destination }, payload);
  return lab.put(sourceKind === "pod" ? "a" : "uplink", packet);
}

/** In the words of the public cases. */
function outcome(seen: readonly Became[], { destination, destinationPort }: ServiceConnection): string {
  const words = new Set(seen.map(({ line }) => /(?:REJECT|DROP|PASS)_\w+/.exec(line)?.[0] ?? line));
  const only = [...words].join();
  if (only.startsWith("REJECT_")) return "reject";
  if (only.startsWith("DROP_")) return "drop";
  const ends = [...new Set(seen.map(({ packet, leftTo }) => leftTo ?? spoken(packet).split(" > ")[1]!))].sort();
  const untouched = destination.includes(":")
    ? `[${destination}]:${destinationPort}`
    : `${destination}:${destinationPort}`;
  return ends.join() === untouched ? "pass" : ends.join();
}

function expected({ expect: wanted }: ServiceConnection): string {
  return wanted.result === "backends" ? wanted.backends.join() : wanted.result;
}

function sourceOf({ packet }: Became): string {
  return /(?:tcp|udp) (.*):\d+ > /.exec(spoken(packet))![1]!;
}

/** The client, always; but a pod that answers itself is asked by the service's address. */
function wantedSource({ packet }: Became, { source, destination }: ServiceConnection): string {
  const backend = /> (.*):\d+$/.exec(spoken(packet))![1]!.replace(/[[\]]/g, "");
  const client = backend === source ? destination : source;
  return client.includes(":") ? `[${client}]` : client;
}

function net(address: string): string {
  return `${address}/${address.includes(":") ? 128 : 32}`;
}
