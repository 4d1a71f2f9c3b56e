import { fieldAt } from "../field-at.ts";
import type { SeenNode, SeenService } from "../observation.ts";
import { unavailableAllowed } from "../plans/cluster-view.ts";
import { type Check, fail, OK, ok, skip, some, warn } from "./check.ts";
import { patchCommand } from "./commands.ts";

const ROLLING = "Node agents are replaced by a rolling update, one node after another. See docs/guide/upgrade.md.";
const capacity = { group: "rollout", for: ["install", "switch", "upgrade"] } as const;

/** Whether pods can be replaced node by node without getting stuck. */
export const ROLLOUT_CHECKS: readonly Check[] = [
  {
    code: "NODES_NOT_READY",
    title: "Nodes are not ready",
    why: "Agents do not start on them, so a rollout would not finish.",
    fix: "kubectl describe node NODE",
    rule: ROLLING,
    group: capacity.group,
    for: ["running", ...capacity.for],
    run: ({ nodes, service }, { purpose }) => {
      const waiting = nodes.filter((node) => isBeforeCni(node, service)).length;
      const down = nodes.filter((node) => !node.ready && !isBeforeCni(node, service)).map(({ name }) => name);
      if (down.length === 0) {
        return ok(waiting > 0 ? `${waiting} of ${nodes.length} nodes wait for a CNI` : `${nodes.length} nodes`);
      }
      const lines = some(down.map((name) => `node ${name} is not ready`));
      const allowed = unavailableAllowed(service.nodeAgents, nodes.length);
      const stuck = (purpose === "upgrade" || purpose === "switch") && service.nodeAgents && down.length >= allowed;
      const fix = `kubectl describe node ${down[0]}`;
      return stuck
        ? fail([...lines, `a rollout may leave ${allowed} of ${nodes.length} nodes without an agent`], fix)
        : warn(lines, fix);
    },
  },
  {
    code: "NO_ROOM_FOR_PODS",
    title: "No node is schedulable",
    why: "The operator and the controllers are ordinary pods and need a schedulable node.",
    fix: "kubectl uncordon NODE",
    rule: ROLLING,
    ...capacity,
    run: ({ nodes, service }) => {
      const open = nodes.filter(
        (node) => node.schedulable && (node.ready || isBeforeCni(node, service)) && node.operatingSystem !== "windows",
      );
      if (open.length > 0) return ok(`${open.length} of ${nodes.length} nodes`);
      const [cordoned] = nodes.filter(({ schedulable }) => !schedulable);
      return fail(
        [`none of ${nodes.length} nodes is ready and schedulable`],
        cordoned && `kubectl uncordon ${cordoned.name}`,
      );
    },
  },
  {
    code: "ROLLOUT_STANDS_STILL",
    title: "DaemonSet of node agents is OnDelete",
    why: "With the update strategy OnDelete a change reaches a node only when its pod is deleted. An upgrade in waves deletes them itself; a switch does not.",
    fix: "Set the update strategy to RollingUpdate: nodeUpdateStrategy of the Installation, or updateStrategy of the DaemonSet in a plain manifest.",
    rule: ROLLING,
    ...capacity,
    for: ["switch"],
    run: ({ service, names }) => {
      const { nodeAgents } = service;
      if (!nodeAgents) return skip("no node agents run yet");
      const strategy = fieldAt(nodeAgents, "spec.updateStrategy.type") ?? "RollingUpdate";
      if (strategy === "RollingUpdate") return OK;
      const { name, namespace } = nodeAgents.metadata;
      const fix = service.installation && patchCommand(names, "installation", names.fields.nodeUpdateStrategy, null);
      return fail([`DaemonSet ${namespace}/${name} has ${strategy}`], fix);
    },
  },
  {
    code: "BUDGET_ALLOWS_NOTHING",
    title: "PodDisruptionBudget allows no disruption",
    why: "A node drain would wait for this pod without end.",
    fix: "Repair the workload, or raise maxUnavailable of the budget.",
    rule: ROLLING,
    ...capacity,
    run: ({ budgets }) => {
      const closed = budgets.filter((budget) => {
        const { disruptionsAllowed, expectedPods } = (budget["status"] ?? {}) as {
          disruptionsAllowed?: number;
          expectedPods?: number;
        };
        return disruptionsAllowed === 0 && (expectedPods ?? 0) > 0;
      });
      const lines = closed.map(
        ({ metadata }) => `PodDisruptionBudget ${metadata.namespace}/${metadata.name} allows 0 disruptions`,
      );
      return warn(some(lines));
    },
  },
];

/** Nodes become ready through the CNI that is about to be installed; the operator and the agents tolerate that they are not. */
function isBeforeCni({ waitsForCni }: SeenNode, { nodeAgents }: SeenService): boolean {
  return waitsForCni && nodeAgents === undefined;
}
