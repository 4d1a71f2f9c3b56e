import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import type { ApiRequest, Transport } from "../../api/transport.ts";
import { createClient } from "../../cluster/client.ts";
import { errors as clusterErrors } from "../../cluster/errors.ts";
import { LEASES } from "../../cluster/kinds.ts";
import { type FakeClock, fakeClock } from "../../kit/fake-clock.ts";
import { type BareCluster, bareCluster, planOf } from "../testing/bare-cluster.ts";
import { startRun } from "./engine.ts";

let cluster: BareCluster;
beforeEach(async () => {
  cluster = await bareCluster();
});
afterEach(() => cluster.close());

/** An API server that stops answering when the plan's first object is written, until the test says otherwise. */
function silentAfterFirstWrite(inner: Transport) {
  const state = { down: false, wasDown: false, writes: [] as string[] };
  const transport: Transport = {
    close: () => inner.close(),
    request: async (request: ApiRequest) => {
      const isLease = request.path.includes("/leases");
      if (!state.wasDown && request.method !== "GET" && request.path.endsWith("/configmaps/settings")) {
        state.down = true;
        state.wasDown = true;
      }
      if (state.down) throw clusterErrors.CLUSTER_UNREACHABLE("https://api:6443", "no answer");
      if (request.method !== "GET" && !isLease) state.writes.push(request.path);
      return await inner.request(request);
    },
  };
  return { transport, state };
}

/** Runs the plan while time passes a second at a time; `each` sees every second of the outage. */
async function runThrough(each: (outage: number, state: { down: boolean }) => void | Promise<void>) {
  const clock: FakeClock = fakeClock(Date.now());
  const { transport, state } = silentAfterFirstWrite(cluster.server.transport());
  const notes: string[] = [];
  let outcome = "";
  let over = false;
  const running = (async () => {
    const client = createClient(transport, { userAgent: "vendorctl", clock });
    for await (const event of startRun(cluster.engine({ client, clock }), planOf())) {
      if (event.event === "note") notes.push(event.text);
      if (event.event === "end") outcome = event.outcome;
    }
  })().finally(() => {
    over = true;
  });
  const failed = running.then(
    () => undefined,
    (error: unknown) => error as Error & { code?: string },
  );
  for (let outage = 0; !over; ) {
    await new Promise((soon) => setTimeout(soon, 1));
    await clock.advance(1_000);
    if (state.down) await each(++outage, state);
  }
  return { notes, outcome: () => outcome, failed: await failed, writes: state.writes };
}

describe("an API server that does not answer", () => {
  it("for 90 s is reported with the seconds, and the run goes on when it answers: the lease is still ours", async () => {
    const { notes, outcome, failed } = await runThrough((outage, state) => {
      if (outage >= 90) state.down = false;
    });
    expect(failed).toBeUndefined();
    expect(outcome()).toBe("done");
    expect(notes).toContainEqual(expect.stringMatching(/^the API server did not answer for 6\d s; still retrying$/));
    expect(notes.join()).not.toContain("another vendorctl");
  });

  it("and then has the lease of another vendorctl ends the run, and not one write comes after it", async () => {
    let atReturn = -1;
    const { failed, writes } = await runThrough(async (outage, state) => {
      if (outage !== 60) return;
      const lease = await cluster.client.get<KubeObject>(LEASES, { namespace: "kube-system", name: "vendorctl" });
      const spec = { ...(lease["spec"] as object), holderIdentity: "another/1/2" };
      await cluster.client.replace(LEASES, { ...lease, spec });
      atReturn = 0;
      state.down = false;
    });
    expect(atReturn).toBe(0);
    expect(failed?.code).toBe("RUN_TAKEN_OVER");
    expect(writes.filter((path) => path.includes("/configmaps/settings"))).toEqual([]);
  });

  it("for more than ten minutes stops the run with the truth", async () => {
    const { failed } = await runThrough(() => {});
    expect(failed).toMatchObject({
      code: "RUN_API_SILENT",
      message: expect.stringMatching(/^the API server did not answer for 60\d s$/),
    });
  });
});
