import assert from "node:assert/strict";
import type { EbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import { allow, deltaOf, POD_A, POD_B } from "../ebpf/packet-lab.ts";
import { CLOSED, type Lab, OPEN } from "./lab.ts";

/** Real connections and denied ones are in the flow logs, as far as this kernel has what they are swept by. */
export async function flowsAreCounted(scene: Lab, plane: EbpfDataplane): Promise<void> {
  const bIngress = [allow({ protocol: 6, dstPorts: [[OPEN, OPEN]] })];
  const { objects } = await plane.apply(deltaOf({ aEgress: [allow()], bIngress }));
  for (const { id, failed } of objects) if (failed) throw new Error(`${id}: ${failed.message}`);
  const flows = plane.flows();
  await flows.begin(1);
  for (const address of [POD_B.v4, POD_B.v6]) {
    const connection = await scene.speakers.a.open(address, OPEN);
    await connection.answers();
    await connection.close();
  }
  assert.equal(await scene.speakers.a.tries(POD_B.v4, CLOSED), "silence");
  await flows.begin(2);
  const sums = await flows.read(1);
  const of = (destination: string, port: number) =>
    sums.filter((sum) => sum.destination === destination && sum.destinationPort === port);
  for (const [source, address] of [
    [POD_A.v4, POD_B.v4],
    [POD_A.v6, POD_B.v6],
  ] as const) {
    const [sum, ...others] = of(address, OPEN);
    assert.deepEqual(others, []);
    assert.ok(sum && sum.packets > 3 && sum.replyPackets > 1 && sum.bytes > 100, JSON.stringify(sum));
    assert.deepEqual([sum.source, sum.started, sum.verdict], [source, 1, "Allow"]);
    assert.deepEqual([sum.egress, sum.ingress], [[allow().id], [bIngress[0]!.id]]);
  }
  const [denied] = of(POD_B.v4, CLOSED);
  assert.deepEqual([denied?.verdict, denied?.reason], ["Deny", "policy_workload_ingress"]);
  assert.deepEqual(denied?.ingress, ["default;end"]);
  await flows.stop();
}
