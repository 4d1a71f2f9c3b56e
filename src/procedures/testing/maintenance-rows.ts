import { acting, agent, agents, leftover, type Row, running, status, unsupported } from "./checked-clusters.ts";
import { node, object } from "./observed.ts";

export const ROLLOUT_ROWS: readonly Row[] = [
  {
    code: "NODES_NOT_READY",
    for: "upgrade",
    as: "fail",
    like: { service: { ...running(), nodeAgents: agents() } },
    wrong: { nodes: [node("a"), node("b", { ready: false, waitsForCni: true })] },
    names: "node b",
  },
  {
    code: "NO_ROOM_FOR_PODS",
    for: "install",
    as: "fail",
    wrong: { nodes: [node("a", { schedulable: false, ready: false, waitsForCni: true })] },
    fine: { nodes: [node("a", { ready: false, waitsForCni: true })] },
    names: "1 nodes",
  },
  {
    code: "ROLLOUT_STANDS_STILL",
    for: "switch",
    as: "fail",
    wrong: { service: { ...running(), nodeAgents: agents({ spec: { updateStrategy: { type: "OnDelete" } } }) } },
    fine: { service: { ...running(), nodeAgents: agents() } },
    names: "OnDelete",
  },
  {
    code: "BUDGET_ALLOWS_NOTHING",
    for: "upgrade",
    as: "warn",
    wrong: {
      budgets: [object("PodDisruptionBudget", "typha", { status: { disruptionsAllowed: 0, expectedPods: 1 } })],
    },
    fine: { budgets: [object("PodDisruptionBudget", "typha", { status: { disruptionsAllowed: 1, expectedPods: 2 } })] },
    names: "typha",
  },
];

export const HEALTH_ROWS: readonly Row[] = [
  {
    code: "STATUS_DEGRADED",
    for: "running",
    as: "fail",
    wrong: { service: { ...running(), statuses: [status("network", "Degraded", "node worker-1 has no disk")] } },
    fine: { service: { ...running(), statuses: [status("network", "Available", "fine")] } },
    names: "no disk",
  },
  {
    code: "STATUS_PROGRESSING",
    for: "running",
    as: "warn",
    wrong: { service: { ...running(), statuses: [status("network", "Progressing", "1 of 3 pods")] } },
    fine: { service: { ...running(), statuses: [status("network", "Available", "fine")] } },
    names: "1 of 3",
  },
  {
    code: "HTTP_RULE_WITHOUT_SIDECARS",
    for: "running",
    as: "warn",
    wrong: unsupported("http-rule", "GlobalNetworkPolicy paths"),
    names: "GlobalNetworkPolicy paths",
  },
  {
    code: "POOL_WITHOUT_CONTROLLER",
    for: "running",
    as: "warn",
    wrong: unsupported("idle-pool", "IPPool addresses"),
    names: "IPPool addresses",
  },
  {
    code: "AGENTS_NOT_READY",
    for: "running",
    as: "fail",
    wrong: { service: { ...running(), nodeAgents: agents(), agents: [agent({ ready: "0/1" })] } },
    fine: { service: { ...running(), nodeAgents: agents(), agents: [agent()] } },
    names: "worker-1",
  },
  {
    code: "SERVICE_ROUTING_UNPROVEN",
    for: "running",
    as: "fail",
    wrong: {
      service: {
        ...acting(),
        agents: [agent({}, { servicesProven: true }), agent({ node: "worker-2", pod: "vendor-node-y" })],
      },
    },
    fine: { service: { ...acting(), agents: [agent({}, { servicesProven: true })] } },
    names: "worker-2",
  },
  {
    code: "V3_API_AWAY",
    for: "running",
    as: "fail",
    like: { service: { ...running(), apiServer: object("APIServer", "default") } },
    wrong: { v3: { served: "stored" } },
    fine: { v3: { served: "aggregated" } },
    names: "v3.vendor.io",
  },
];

export const LEFTOVER_ROWS: readonly Row[] = [
  {
    code: "OLD_NAMESPACE",
    for: "install",
    as: "fail",
    wrong: leftover("namespace", "Namespace vendor-system"),
    names: "vendor-system",
  },
  {
    code: "STUCK_FINALIZER",
    for: "install",
    as: "fail",
    wrong: leftover("finalizer", "Installation default"),
    names: "default",
  },
  {
    code: "STALE_API_SERVICE",
    for: "install",
    as: "fail",
    wrong: leftover("api-service", "APIService v3.vendor.io"),
    names: "v3.vendor.io",
  },
  {
    code: "HALF_MIGRATION",
    for: "upgrade",
    as: "fail",
    wrong: leftover("half-migration", "Node worker-1"),
    names: "worker-1",
  },
  {
    code: "RUN_IN_PROGRESS",
    for: "upgrade",
    as: "fail",
    wrong: { run: { holder: "laptop/1234", renewed: "2025-12-31T23:59:55Z", seconds: 15 } },
    names: "laptop/1234",
  },
];
