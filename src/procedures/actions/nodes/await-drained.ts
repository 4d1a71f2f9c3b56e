import { announcedDataplane } from "../../../api/protocol/agent-report.ts";
import type { Pod } from "../../../api/workload-objects.ts";
import { PODS } from "../../../cluster/kinds.ts";
import type { Work } from "../../action.ts";
import { awaitObjects } from "../objects/await-objects.ts";
import { isAgent } from "./agents.ts";
import { namesOf } from "./prove-dataplane.ts";

/**
 * Waits until no agent reports that eBPF still carries connections on its node. An operator of before v3.31.3 takes an agent that restarts
 * while its node drains for one without eBPF: it rolls the agents out without privileges, then with them again, and no drain ends.
 */
export async function awaitDrained(work: Work): Promise<void> {
  const { names } = work;
  await awaitObjects(work, [{ kind: PODS, namespace: names.namespaces.system }], ([pods = []]) => {
    const draining = pods.filter(
      (pod) => isAgent(pod, names) && announcedDataplane(pod.metadata.annotations) === "DrainingBPF",
    );
    if (draining.length === 0) return "done";
    const nodes = (draining as Pod[]).map(({ spec }) => spec?.nodeName ?? "");
    return { waitingFor: `connections that only eBPF carries to end on ${namesOf(nodes)}` };
  });
}
