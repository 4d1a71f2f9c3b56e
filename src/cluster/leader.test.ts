import { describe, expect, it } from "vitest";
import { type FakeClock, fakeClock } from "../kit/fake-clock.ts";
import { createClient } from "./client.ts";
import { electLeader } from "./leader.ts";
import type { Lease } from "./lease.ts";
import { type ScriptedServer, scriptedServer } from "./testing/scripted-server.ts";

const LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";

function lease(server: ScriptedServer): Lease["spec"] {
  return (server.objects(LEASES_PATH)[0] as Lease | undefined)?.spec;
}

/** A candidate with its own clock and its own way to the server, so that either can fail alone. */
function candidate(server: ScriptedServer, identity: string, clock: FakeClock, skewMs = 0) {
  const skewed = { now: () => clock.now() + skewMs, setTimeout: clock.setTimeout };
  const transport = server.transport();
  let cut = false;
  const client = createClient(
    {
      request: (request) => (cut ? hangUntilAborted(request.signal) : transport.request(request)),
      close() {},
    },
    { userAgent: identity },
  );
  const terms: string[] = [];
  const election = electLeader({ client, namespace: "ns", name: "boss", identity, clock: skewed }, async (signal) => {
    terms.push(`began ${clock.now()}`);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    terms.push(`ended ${clock.now()}`);
  });
  return {
    election,
    terms,
    cut: (on: boolean) => {
      cut = on;
    },
  };
}

function hangUntilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
}

describe("leader election", () => {
  it("the first candidate makes the lease and keeps renewing it; the second waits", async () => {
    const clock = fakeClock();
    const server = scriptedServer();
    const a = candidate(server, "a", clock);
    await clock.advance(100);
    const b = candidate(server, "b", clock);
    await clock.advance(120_000);
    expect([a.election.leading, b.election.leading]).toEqual([true, false]);
    expect(lease(server)).toEqual({
      holderIdentity: "a",
      leaseDurationSeconds: 15,
      acquireTime: "1970-01-01T00:00:00.000000Z",
      renewTime: "1970-01-01T00:02:00.000000Z",
      leaseTransitions: 0,
    });
    await a.election.stop();
    await b.election.stop();
  });

  it("stop ends the work first and then gives the lease back, so that the next need not wait", async () => {
    const clock = fakeClock();
    const server = scriptedServer();
    const a = candidate(server, "a", clock);
    await clock.advance(1_000);
    const b = candidate(server, "b", clock);
    await clock.advance(1_000);
    await a.election.stop();
    expect(a.terms).toEqual(["began 0", "ended 2000"]);
    expect(lease(server)?.holderIdentity).toBeUndefined();
    await clock.advance(2_100);
    expect(b.election.leading).toBe(true);
    expect(lease(server)).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
    await b.election.stop();
  });

  it("a leader cut off stops in time: its work has ended before anyone takes over, and it stands again later", async () => {
    const clock = fakeClock();
    const server = scriptedServer();
    const a = candidate(server, "a", clock);
    await clock.advance(100);
    const b = candidate(server, "b", clock);
    await clock.advance(20_000);
    a.cut(true);
    await clock.advance(30_000);
    const ended = Number(a.terms[1]?.replace("ended ", ""));
    const began = Number(b.terms[0]?.replace("began ", ""));
    expect(ended).toBeLessThanOrEqual(20_000 + 10_000);
    expect(began).toBeGreaterThan(ended);
    expect(began).toBeLessThan(20_000 + 15_000 + 5_000);

    a.cut(false);
    await b.election.stop();
    await clock.advance(15_000);
    expect(a.election.leading).toBe(true);
    await a.election.stop();
  });

  it.each([-3_600_000, 3_600_000])(
    "a clock that is %i ms off neither steals a lease nor waits longer",
    async (skew) => {
      const clock = fakeClock(10_000_000);
      const server = scriptedServer();
      const a = candidate(server, "a", clock);
      await clock.advance(100);
      const b = candidate(server, "b", clock, skew);
      await clock.advance(60_000);
      expect(b.terms).toEqual([]);
      a.cut(true);
      await clock.advance(20_000);
      expect(b.election.leading).toBe(true);
      a.cut(false);
      await a.election.stop();
      await b.election.stop();
    },
  );

  it("of two that reach for a free lease at once, one gets it", async () => {
    const clock = fakeClock();
    const server = scriptedServer();
    const all = ["a", "b", "c"].map((identity) => candidate(server, identity, clock));
    await clock.advance(30_000);
    expect(all.filter(({ election }) => election.leading)).toHaveLength(1);
    for (const { election } of all) await election.stop();
  });

  it("survives a short outage without giving up the lease", async () => {
    const clock = fakeClock();
    const server = scriptedServer();
    const a = candidate(server, "a", clock);
    await clock.advance(10_000);
    server.failNext(3, "refuse");
    await clock.advance(20_000);
    expect(a.terms).toEqual(["began 0"]);
    await a.election.stop();
  });

  it("steps down at once when it sees another's name on the lease", async () => {
    const clock = fakeClock();
    const server = scriptedServer();
    const a = candidate(server, "a", clock);
    await clock.advance(10_000);
    const spec = { ...lease(server), holderIdentity: "usurper", renewTime: "later" };
    server.set(LEASES_PATH, "boss", { metadata: { name: "boss", namespace: "ns" }, spec });
    await clock.advance(2_000);
    expect(a.election.leading).toBe(false);
    expect(a.terms).toEqual(["began 0", "ended 12000"]);
    await a.election.stop();
    expect(lease(server)?.holderIdentity).toBe("usurper");
  });
});
