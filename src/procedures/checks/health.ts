import type { Condition, KubeObject } from "../../api/object.ts";
import { isPartial } from "../../api/protocol/status-reasons.ts";
import { WARNING_PROBLEMS } from "../../api/validation/write-warnings.ts";
import { isAgentHealthy } from "../agent-ready.ts";
import { isEbpfOn } from "../plans/cluster-view.ts";
import { type Check, fail, OK, ok, type Situation, skip, some, warn } from "./check.ts";
import { unsupportedIn } from "./unsupported.ts";

const STATUS =
  "The operator reports the state of each component in its VendorStatus. See docs/guide/operator.md#status.";
const health = { group: "health", for: ["running", "switch", "upgrade"] } as const;

/** What people's objects ask for in vain. */
const objects = { group: "health", for: ["running"] } as const;

export const HEALTH_CHECKS: readonly Check[] = [
  {
    code: "STATUS_DEGRADED",
    title: "Operator reports Degraded",
    why: "The operator cannot reconcile until the cause is removed; a change now would not roll out.",
    fix: "vendorctl status",
    rule: STATUS,
    ...health,
    run: ({ service }, situation) => {
      const found = service.statuses.flatMap((status) => {
        const condition = conditionOf(status, "Degraded");
        return condition ? [{ name: status.metadata.name, ...condition }] : [];
      });
      const bad = found.map(({ name, reason, message }) => `${name}: ${reason || "Degraded"}: ${message ?? ""}`.trim());
      // What users of a namespace wrote must not keep the cluster from a switch.
      const isPart = situation.purpose === "switch" && found.every(({ reason }) => isPartial(reason));
      return (isPart ? warn : asBad(situation))(bad, "vendorctl status");
    },
  },
  {
    code: "STATUS_PROGRESSING",
    title: "Operator reports Progressing",
    why: "A rollout is under way, so findings may change.",
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
    why: "On a node without its agent, new pods get no network and new policies no effect.",
    fix: "kubectl -n vendor-system describe pod POD",
    rule: "Pods of node agents are Running and ready: 2/2 with the API datastore, 1/2 with etcd. See docs/guide/upgrade.md.",
    ...health,
    run: (seen, situation) => {
      const { agents, nodeAgents } = seen.service;
      if (!nodeAgents) return skip("no node agents run");
      const bad = agents.filter((agent) => !isAgentHealthy(agent, seen.service, seen.names));
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
    title: "eBPF service routing is not verified",
    why: "Until the agent has verified it, Services may not work on that node without kube-proxy.",
    fix: "kubectl -n vendor-system logs POD",
    rule: "In eBPF mode the data plane serves Services in place of kube-proxy. See docs/guide/kube-proxy-replacement.md.",
    group: "health",
    for: ["running"],
    ebpfOnly: true,
    run: (seen) => {
      if (!isEbpfOn(seen)) return skip("eBPF is not enabled");
      const { agents } = seen.service;
      const bad = agents.filter(({ report }) => !report.servicesProven);
      if (bad.length === agents.length) return skip("the agents do not report it");
      return fail(some(bad.map(({ node, pod }) => `node ${node}: pod ${pod} has not verified it yet`)));
    },
  },
  {
    code: "V3_API_AWAY",
    title: "v3 API does not answer",
    why: "Policies cannot be read or changed through it, and deletions of namespaces hang.",
    fix: "kubectl describe apiservice v3.vendor.io",
    rule: "The v3 API is served by an aggregated API server. See docs/guide/resources.md#datastores.",
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
  {
    code: "HTTP_RULE_WITHOUT_SIDECARS",
    ...WARNING_PROBLEMS.HTTP_RULE_WITHOUT_SIDECARS,
    ...objects,
    run: (seen) => warn(unsupportedIn(seen, "http-rule")),
  },
  {
    code: "POOL_WITHOUT_CONTROLLER",
    ...WARNING_PROBLEMS.POOL_WITHOUT_CONTROLLER,
    ...objects,
    run: (seen) => warn(unsupportedIn(seen, "idle-pool")),
  },
];

/** An upgrade, and a switch back to the nftables data plane, may be the very cure: they are not blocked. */
function asBad({ purpose, dataplane }: Situation): typeof fail {
  return purpose === "running" || (purpose === "switch" && dataplane === "BPF") ? fail : warn;
}

function conditionOf(status: KubeObject, type: string): Condition | undefined {
  const { conditions = [] } = (status["status"] ?? {}) as { conditions?: Condition[] };
  return conditions.find((condition) => condition.type === type && condition.status === "True");
}
