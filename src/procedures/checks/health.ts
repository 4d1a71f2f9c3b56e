import type { Condition, KubeObject } from "../../api/object.ts";
import { agentIsWell } from "../agent-ready.ts";
import { isEbpfOn } from "../plans/cluster-view.ts";
import { type Check, fail, OK, ok, type Situation, skip, some, warn } from "./check.ts";

const STATUS = "Status resource: name per component; readable to follow installation progress.";
const health = { group: "health", for: ["running", "switch", "upgrade"] } as const;

export const HEALTH_CHECKS: readonly Check[] = [
  {
    code: "STATUS_DEGRADED",
    title: "The operator reports something as degraded",
    why: "It cannot bring the cluster to what was asked until the cause is gone; a change now would not be carried out.",
    fix: "vendorctl status shows the cause and what to do.",
    rule: STATUS,
    ...health,
    run: ({ service }, situation) => {
      const bad = service.statuses.flatMap((status) => {
        const condition = conditionOf(status, "Degraded");
        return condition
          ? [`${status.metadata.name}: ${condition.reason ?? "Degraded"}: ${condition.message ?? ""}`.trim()]
          : [];
      });
      return asBad(situation)(bad, "vendorctl status");
    },
  },
  {
    code: "STATUS_PROGRESSING",
    title: "The operator has not finished",
    why: "What is checked now may be another thing in a moment.",
    fix: "vendorctl status --watch",
    rule: STATUS,
    ...health,
    run: ({ service }) => {
      const busy = service.statuses.flatMap((status) => {
        const condition = conditionOf(status, "Progressing");
        return condition ? [`${status.metadata.name}: ${condition.message ?? condition.reason ?? ""}`] : [];
      });
      return warn(busy, "vendorctl status --watch");
    },
  },
  {
    code: "AGENTS_NOT_READY",
    title: "Node agents are not ready",
    why: "A node without its agent keeps yesterday's network: new pods and new policies do not reach it.",
    fix: "See the pod's events and log.",
    rule: "Pod status during upgrade: Running, with READY column 2/2 (orchestrator-API-datastore install) or 1/2 (etcd install).",
    ...health,
    run: (seen, situation) => {
      const { agents, nodeAgents } = seen.service;
      if (!nodeAgents) return skip("no node agents run");
      const bad = agents.filter((agent) => !agentIsWell(agent, seen.service, seen.names));
      const lines = bad.map(
        ({ node, pod, phase, ready }) => `node ${node || "(none)"}: pod ${pod} is ${phase}, READY ${ready}`,
      );
      const [first] = bad;
      const fix = first && `kubectl -n ${nodeAgents.metadata.namespace} describe pod ${first.pod}`;
      return bad.length > 0 ? asBad(situation)(some(lines), fix) : ok(`${agents.length} agents`);
    },
  },
  {
    code: "SERVICE_ROUTING_UNPROVEN",
    title: "A node has not proven that eBPF serves services",
    why: "Until it has, nobody knows whether services work there without the service proxy.",
    fix: "See the agent's log on that node.",
    rule: "In eBPF mode the service takes over from the service proxy.",
    group: "health",
    for: ["running"],
    ebpfOnly: true,
    run: (seen) => {
      if (!isEbpfOn(seen)) return skip("eBPF does not act");
      const { agents } = seen.service;
      const bad = agents.filter(({ report }) => !report.servicesProven);
      if (bad.length === agents.length) return skip("the agents do not say");
      return fail(some(bad.map(({ node, pod }) => `node ${node}: pod ${pod} has proven nothing yet`)));
    },
  },
  {
    code: "V3_API_AWAY",
    title: "The v3 API is asked for and does not answer",
    why: "People and tools cannot read or change policies, and deletions of namespaces hang.",
    fix: "See why its pods do not answer.",
    rule: "API server resource: default.",
    ...health,
    run: ({ service, v3, names }, { purpose }) => {
      if (!service.apiServer) return skip(`no ${names.kinds.apiServer.kind} is asked for`);
      if (v3.served === "aggregated") return OK;
      const { group, version } = names.groups.served;
      // No packet depends on it: it keeps nothing from starting.
      return (purpose === "running" ? fail : warn)(
        [`APIService ${version}.${group} is not available`],
        `kubectl describe apiservice ${version}.${group}`,
      );
    },
  },
];

/** An upgrade, and the way back to the standard data plane, may be the very cure: they are not kept from starting. */
function asBad({ purpose, dataplane }: Situation): typeof fail {
  return purpose === "running" || (purpose === "switch" && dataplane === "BPF") ? fail : warn;
}

function conditionOf(status: KubeObject, type: string): Condition | undefined {
  const { conditions = [] } = (status["status"] ?? {}) as { conditions?: Condition[] };
  return conditions.find((condition) => condition.type === type && condition.status === "True");
}
