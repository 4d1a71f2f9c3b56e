import { afterEach, describe, expect, it } from "vitest";
import { StatusError } from "../api/status.ts";
import type { ApiResponse, Transport } from "../api/transport.ts";
import { storedKind } from "./managed-kinds.ts";
import { allObjectsOf, expireLease, isWrite, type OperatorLab, operatorLab } from "./testing/operator-lab.ts";

let world: OperatorLab;
afterEach(() => world.stop());

/** From its nth write on nothing of this operator reaches the server: the write itself may have, or may not. */
function killedAfter(real: Transport, write: number, onKill: () => void): Transport {
  let written = 0;
  let dead = false;
  const refuse = () => Promise.reject(new Error("killed"));
  return {
    async request(request) {
      if (dead) return refuse();
      if (!isWrite(request) || ++written < write) return real.request(request);
      dead = true;
      // Half the time the server has done it and only the answer is lost.
      if (write % 2 === 0) await real.request(request);
      onKill();
      return refuse();
    },
    close: () => real.close(),
  };
}

/** Answers every nth write with a refusal that means nothing, in turn. */
function flaky(real: Transport, everyNth: number, count: () => void): Transport {
  const codes = [409, 429, 500] as const;
  let writes = 0;
  return {
    async request(request) {
      if (!isWrite(request) || ++writes % everyNth !== 0) return real.request(request);
      count();
      const code = codes[(writes / everyNth) % codes.length] ?? 500;
      return failure(code);
    },
    close: () => real.close(),
  };
}

function failure(code: number): ApiResponse {
  const reason = code === 409 ? "Conflict" : code === 429 ? "TooManyRequests" : "InternalError";
  const body = JSON.stringify(new StatusError(code, reason, "injected").status);
  return { status: code, headers: {}, text: async () => body, async *lines() {} };
}

const SPEC = { vendorNetwork: { linuxDataplane: "BPF", serviceProxyManagement: "Enabled" } };
const PARTS = ["network", "ippools", "apiserver", "service-proxy"];

async function installed(): Promise<string[]> {
  for (const part of PARTS) await world.untilStatus(part, "Available");
  return allObjectsOf(world.kubectl);
}

async function removed(): Promise<void> {
  await world.kubectl.delete(storedKind("installation"), { name: "default" });
  await world.kubectl.delete(storedKind("apiServer"), { name: "default" });
  await world.until(
    async () => (await world.get(storedKind("installation"), { name: "default" })) === undefined,
    (gone) => gone,
  );
}

describe("whatever happens to the operator", () => {
  it("killed after any of its writes, the next one ends in the same state", async () => {
    world = await operatorLab({ nodes: 2 });
    const first = world.startOperator();
    const before = await allObjectsOf(world.kubectl);
    await world.installation(SPEC);
    await world.request("apiServer");
    const wanted = await installed();
    const total = world.writes.length;
    await removed();
    await first.stop();
    let kills = 0;
    for (let write = 1; write <= total; write += STRIDE) {
      const { ended, stop } = startDoomed(write);
      await world.installation(SPEC);
      await world.request("apiServer");
      await ended;
      await stop();
      kills++;
      await expireLease(world.kubectl);
      const next = world.startOperator();
      expect(await installed()).toEqual(wanted);
      await removed();
      await world.until(
        () => allObjectsOf(world.kubectl),
        (now) => now.join() === before.join(),
      );
      await next.stop();
    }
    console.log(`operator killed ${kills} times, after every ${STRIDE}. of ${total} writes of an installation`);
  });

  it("with every third write refused by 409, 429 or 500 it installs and removes all the same", async () => {
    world = await operatorLab({ nodes: 2 });
    let faults = 0;
    world.startOperator({ transport: (real) => flaky(real, 3, () => faults++) });
    const before = await allObjectsOf(world.kubectl);
    await world.installation(SPEC);
    await world.request("apiServer");
    await installed();
    await removed();
    await world.until(
      () => allObjectsOf(world.kubectl),
      (now) => now.join() === before.join(),
    );
    console.log(`${faults} writes refused with 409, 429 and 500 in turn`);
    expect(faults).toBeGreaterThan(10);
  });
});

/** A kill after each write takes minutes; CI takes them all, a desk takes samples. */
const STRIDE = process.env["FAULTS"] === "all" ? 1 : 15;

function startDoomed(write: number): { ended: Promise<void>; stop(): Promise<void> } {
  let killed: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    killed = resolve;
  });
  const operator = world.startOperator({ transport: (real) => killedAfter(real, write, killed) });
  return { ended, stop: () => operator.stop() };
}
