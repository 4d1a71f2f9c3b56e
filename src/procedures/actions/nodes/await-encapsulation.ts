import type { AgentReport } from "../../../api/protocol/agent-report.ts";
import { PODS } from "../../../cluster/kinds.ts";
import type { Work } from "../../action.ts";
import { awaitObjects } from "../objects/await-objects.ts";
import { agentReports } from "./agents.ts";
import { namesOf } from "./prove-dataplane.ts";

/** What every agent must report: that its node can receive these tunnels, and how it sends to these pools. */
export type EncapsulationWait = {
  /** Of the agents' pods. */
  namespace: string;
  tunnels?: readonly string[];
  /** As `CIDR ENCAPSULATION`. */
  pools?: readonly string[];
};

/** A node whose agent reports nothing is waited for: it may send or receive as before. */
export async function awaitEncapsulation(wait: EncapsulationWait, work: Work): Promise<void> {
  const { namespace, tunnels = [], pools = [] } = wait;
  await awaitObjects(work, [{ kind: PODS, namespace }], ([pods = []]) => {
    const reports = [...agentReports(pods, work.names)];
    const without = (lacks: (seen: AgentReport["encapsulation"]) => boolean) =>
      reports.filter(([, { encapsulation }]) => lacks(encapsulation)).map(([node]) => node);
    const unready = without((seen) => !tunnels.every((tunnel) => seen?.tunnels.includes(tunnel)));
    if (unready.length > 0) return { waitingFor: `${namesOf(unready)} to be ready for ${tunnels.join(" and ")}` };
    const behind = without((seen) => !pools.every((pool) => seen?.pools.includes(pool)));
    return behind.length > 0 ? { waitingFor: `${namesOf(behind)} to send as ${pools.join(", ")} says` } : "done";
  });
}
