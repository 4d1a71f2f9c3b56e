import { describe, expect, it } from "vitest";
import { vendorNames } from "../api/names.ts";
import type { Transport } from "../api/transport.ts";
import type { ApiAddress } from "../cluster/api-server-hosts.ts";
import { fakeClock } from "../kit/fake-clock.ts";
import { endpointOutcome } from "./endpoint-outcome.ts";
import { probeEndpoint } from "./endpoint-probe.ts";

const { endpointMap, namespaces } = vendorNames;

/** An API server that answers at some addresses, and a map that names one. */
function lab() {
  const clock = fakeClock();
  const up = new Set(["api.a"]);
  let named: ApiAddress | undefined = { host: "api.a", port: 6443 };
  let changes = 0;
  const transport = ({ host }: ApiAddress): Transport => ({
    async request() {
      if (!up.has(host)) throw new Error(`cannot reach ${host}`);
      return { status: 403, headers: {}, text: async () => "", lines: async function* () {} };
    },
    close: () => {},
  });
  const probe = probeEndpoint({ address: () => named, transport, clock, onChange: () => void changes++ });
  const map = () =>
    named && {
      ...{ apiVersion: "v1", kind: "ConfigMap" },
      metadata: { name: endpointMap.name, namespace: namespaces.operator },
      data: { [endpointMap.hostKey]: named.host, [endpointMap.portKey]: String(named.port) },
    };
  return {
    ...{ clock, up, probe },
    name: (host: string | undefined) => {
      named = host === undefined ? undefined : { host, port: 6443 };
      probe.changed();
    },
    outcome: () => endpointOutcome({ endpointMap: map(), probedEndpoint: probe.last() }),
    changes: () => changes,
  };
}

describe("the address in the endpoint map", () => {
  it("is given to nothing before the API server has answered there", async () => {
    const { clock, name, outcome } = lab();
    name("api.b");
    expect(outcome()).toMatchObject({ kind: "progressing", waitingFor: "the API server to answer at api.b:6443" });
    await clock.advance(3_000);
    expect(outcome()).toMatchObject({ kind: "degraded", reason: "EndpointUnanswered" });
    expect(outcome()).toMatchObject({
      message: expect.stringMatching(/at api\.b:6443, .*: cannot reach api\.b\. Fix: /),
    });
  });

  it("is used once it is corrected, without waiting; a refusal is an answer, too", async () => {
    const { clock, name, outcome } = lab();
    name("api.b");
    await clock.advance(3_000);
    name("api.a");
    await clock.advance(0);
    expect(outcome()).toBeUndefined();
  });

  it("that answered before may fail once; when it lasts, it is a fault until it answers again", async () => {
    const { clock, up, probe, outcome, changes } = lab();
    probe.changed();
    await clock.advance(0);
    expect([outcome(), changes()]).toEqual([undefined, 1]);
    up.clear();
    await clock.advance(15_000);
    expect(outcome()).toBeUndefined();
    await clock.advance(3_000);
    expect(outcome()).toMatchObject({ reason: "EndpointUnanswered" });
    up.add("api.a");
    await clock.advance(3_000);
    expect([outcome(), changes()]).toEqual([undefined, 3]);
  });

  it("is not asked for where there is no map, and no more after the end", async () => {
    const { clock, name, probe, outcome, changes } = lab();
    name(undefined);
    await clock.advance(60_000);
    expect([outcome(), changes()]).toEqual([undefined, 0]);
    name("api.a");
    await clock.advance(0);
    probe.stop();
    await clock.advance(60_000);
    expect(changes()).toBe(1);
  });
});
