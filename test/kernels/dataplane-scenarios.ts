import assert from "node:assert/strict";
import type { ModelDelta } from "../../src/calc/model.ts";
import type { DataplaneDriver } from "../../src/dataplane/contract.ts";
import { allow, deltaOf, POD_A, POD_B, type PodRules, REMOTE } from "../ebpf/packet-lab.ts";
import { CLOSED, type Lab, OPEN, OUTSIDE } from "./lab.ts";

const tcp = (port: number) => allow({ protocol: 6, dstPorts: [[port, port]] });
const RULES: PodRules = { aEgress: [allow()], bIngress: [tcp(OPEN)], bEgress: [] };

export interface DataplaneUnderTest {
  open(scene: Lab): Promise<DataplaneDriver>;
  /** What the counters say about a packet that a pod's ingress policy did not allow. */
  denied: RegExp;
}

/** One pass through a plane's life, with real connections. Each step stands on the one before, as on a node. */
export async function dataplaneLifecycle(scene: Lab, { open, denied }: DataplaneUnderTest): Promise<void> {
  const { a, b, outside } = scene.speakers;
  // Before there is a plane, everything is open.
  await (await a.open(POD_B.v4, CLOSED)).close();

  let plane = await open(scene);
  await applied(plane, deltaOf(RULES));
  for (const address of [POD_B.v4, POD_B.v6, REMOTE.v4, REMOTE.v6, OUTSIDE.v4]) {
    await (await a.open(address, OPEN)).close();
  }
  for (const address of [POD_B.v4, POD_B.v6]) await (await outside.open(address, OPEN)).close();
  await nobodyHears({
    "a port policy does not open": a.tries(POD_B.v4, CLOSED),
    "the same by IPv6": a.tries(POD_B.v6, CLOSED),
    "a pod that may not speak": b.tries(REMOTE.v4, OPEN),
    "the same, by IPv6": b.tries(REMOTE.v6, OPEN),
    "from outside": outside.tries(POD_B.v4, CLOSED),
    "from outside, by IPv6": outside.tries(POD_B.v6, CLOSED),
  });
  const counters = (await plane.show("counters")).rows.map((row) => row.join(" "));
  assert.ok(
    counters.some((row) => denied.test(row)),
    `no ${denied} in:\n${counters.join("\n")}`,
  );

  const old = await a.open(POD_B.v4, OPEN);
  await old.answers();
  await plane.close();
  await old.answers();
  await nobodyHears({ "while there is no agent": a.tries(POD_B.v4, CLOSED) });
  plane = await open(scene);
  await applied(plane, deltaOf(RULES));
  await plane.sweep();
  await old.answers();
  await nobodyHears({ "after a restart": a.tries(POD_B.v6, CLOSED) });

  await applied(plane, deltaOf({ ...RULES, bIngress: [tcp(CLOSED)] }));
  await nobodyHears({
    "a connection that was open, after another policy came": old.tries(),
    "a new connection, then": a.tries(POD_B.v4, OPEN),
  });
  await (await a.open(POD_B.v6, CLOSED)).close();

  await plane.remove();
  await plane.close();
  await (await b.open(POD_A.v4, OPEN)).close();
  await (await a.open(POD_B.v4, OPEN)).close();
}

async function nobodyHears(tries: Record<string, Promise<string>>): Promise<void> {
  for (const [what, outcome] of Object.entries(tries)) assert.equal(await outcome, "silence", what);
}

async function applied(plane: DataplaneDriver, delta: ModelDelta): Promise<void> {
  const { objects } = await plane.apply(delta);
  for (const { id, failed } of objects) if (failed) throw new Error(`${id}: ${failed.message}`);
}
