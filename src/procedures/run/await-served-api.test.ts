import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../cluster/client.ts";
import { fakeClock } from "../../kit/fake-clock.ts";
import { awaitServedApi } from "./await-served-api.ts";

const STEPS = { steps: [{ id: "a", state: "confirmed" as const }] };
const service = (status: "True" | "False") => ({
  metadata: { name: "v3.vendor.io" },
  spec: { service: { name: "vendor-api" } },
  status: { conditions: [{ type: "Available", status }] },
});

/** What the API server says of the v3 API, look by look; the last stays. */
function clientSaying(looks: readonly { object?: object; answer?: number }[]) {
  let at = 0;
  const look = () => looks[Math.min(at, looks.length - 1)] ?? {};
  const client = {
    get: async () => {
      const { object } = look();
      if (object === undefined) throw new StatusError(404, "NotFound", "none");
      if (look().answer === undefined) at++;
      return object;
    },
    raw: async () => {
      const { answer = 503 } = look();
      at++;
      return { status: answer };
    },
  };
  return { client: client as unknown as Client, looks: () => at };
}

async function ends(looks: Parameters<typeof clientSaying>[0], steps: Parameters<typeof awaitServedApi>[0] = STEPS) {
  const clock = fakeClock();
  const notes: string[] = [];
  const { client, looks: count } = clientSaying(looks);
  let over = false;
  const { signal } = new AbortController();
  const waiting = awaitServedApi(steps, { client, names: vendorNames, clock, signal }, (text) => notes.push(text));
  void waiting.finally(() => {
    over = true;
  });
  while (!over) {
    await new Promise((soon) => setImmediate(soon));
    await clock.advance(500);
  }
  await waiting;
  return { notes, looks: count(), seconds: clock.now() / 1000 };
}

describe("the end of a run", () => {
  it("waits until the v3 API is available and answers", async () => {
    const looks = [
      { object: service("False") },
      { object: service("True"), answer: 503 },
      { object: service("True"), answer: 200 },
    ];
    expect(await ends(looks)).toMatchObject({ notes: [], looks: 3 });
  });

  it("waits for nothing where there is none, or where no step changed anything", async () => {
    expect(await ends([{}])).toMatchObject({ notes: [], looks: 0 });
    const skipped = { steps: [{ id: "a", state: "skipped" as const }] };
    expect(await ends([{ object: service("False") }], skipped)).toMatchObject({ notes: [], looks: 0 });
  });

  it("reports one that stays away, and ends", async () => {
    const { notes } = await ends([{ object: service("False") }]);
    expect(notes).toEqual([
      "APIService v3.vendor.io has not answered for 60 s: kubectl describe apiservice v3.vendor.io",
    ]);
  });
});
