import type { FlowBatch, FlowRow } from "../../src/api/protocol/flow.ts";
import { writeBatch } from "../../src/api/protocol/flow-wire.ts";
import { flowBatch, flowRow, policyHit, randomFrom, workload } from "../../src/flows/flow.fixture.ts";

export interface Cluster {
  nodes: number;
  /** Flows of each. */
  rowsEach: number;
}

/** What each node of a cluster sends in every interval: the same flows, between 500 workloads of 40 namespaces. */
export function clusterRows({ nodes, rowsEach }: Cluster): FlowRow[][] {
  const random = randomFrom(1);
  return Array.from({ length: nodes }, (_, node) =>
    Array.from({ length: rowsEach }, (_, index) => rowOf(node, index, random)),
  );
}

function rowOf(node: number, index: number, random: () => number): FlowRow {
  const number = (most: number) => Math.floor(random() * most);
  const mine = node * 7_919 + index;
  return flowRow(
    {
      from: workload(`namespace-${mine % 40}`, `deployment-${mine % 499}`, { app: `app-${mine % 499}`, tier: "web" }),
      to: workload(`namespace-${(mine * 7) % 40}`, `deployment-${(mine * 13) % 499}`),
      port: 8_000 + (index % 50),
      policies: [policyHit({ direction: "Egress", action: "Allow", rule: mine % 97 }), policyHit({ action: "Allow" })],
      verdict: index % 20 ? "Allow" : "Deny",
      node: `node-${node}`,
    },
    {
      ...{ packets: number(2_000), replyPackets: number(2_000), replyBytes: number(2_000_000) },
      bytes: number(index % 100 ? 2_000_000 : 2 ** 36),
      ...{ started: number(50), ended: number(50), live: number(10) },
      sourceAddresses: [`10.244.${node}.${index % 199}`],
      destinationAddresses: [`10.245.${index % 20}.${index % 197}`],
    },
  );
}

/** A batch as it leaves its node. */
export function batchText(rows: readonly FlowRow[], node: number, some: Partial<FlowBatch>): string {
  return writeBatch(flowBatch(rows, { node: `node-${node}`, ...some }), some.until ?? 0);
}
