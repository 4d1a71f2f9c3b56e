import type { SeenLeftover } from "../observation.ts";
import { ALWAYS, CHANGES, type Check, fail, OK, ok, some, warn } from "./check.ts";

const leftovers = { group: "leftovers", for: ALWAYS } as const;

export const LEFTOVER_CHECKS: readonly Check[] = [
  {
    code: "OLD_NAMESPACE",
    title: "A namespace of the service is going, or no longer needed",
    why: "In a namespace that is being deleted nothing new can be made; an old one only confuses.",
    fix: "kubectl get namespace NAME -o yaml shows what holds it.",
    rule: "Uninstall and upgrade leave nothing behind.",
    ...leftovers,
    run: (seen, { purpose }) => {
      const lines = linesOf(seen.leftovers, "namespace");
      const going = seen.leftovers.some(({ what, terminating }) => what === "namespace" && terminating);
      const name = seen.leftovers.find(({ what }) => what === "namespace")?.object.split(" ")[1];
      return going && purpose !== "running"
        ? fail(lines, `kubectl get namespace ${name} -o jsonpath={.status.conditions}`)
        : warn(
            lines,
            going
              ? `kubectl get namespace ${name} -o jsonpath={.status.conditions}`
              : `kubectl delete namespace ${name}`,
          );
    },
  },
  {
    code: "STUCK_FINALIZER",
    title: "An object should be gone, and something holds it",
    why: "Whoever should let go of it may be gone already; until then it can be neither used nor made anew.",
    fix: "Start the program that should let go of it; if it never comes back, remove the finalizer.",
    rule: "Uninstall: ordered, the operator goes last.",
    ...leftovers,
    run: (seen) => fail(linesOf(seen.leftovers, "finalizer")),
  },
  {
    code: "STALE_API_SERVICE",
    title: "An aggregated API is announced that nobody serves",
    why: "Discovery fails for everybody, and no namespace can be deleted while the API server cannot ask it.",
    fix: "kubectl delete apiservice NAME",
    rule: "Uninstall: ordered, the announcement goes before the server.",
    ...leftovers,
    run: (seen) => {
      const { group, version } = seen.names.groups.served;
      return fail(linesOf(seen.leftovers, "api-service"), `kubectl delete apiservice ${version}.${group}`);
    },
  },
  {
    code: "HALF_MIGRATION",
    title: "A move from manifests to the operator was not finished",
    why: "Some nodes are served by the old agents and some by the new; neither is rolled out to all.",
    fix: "Let the operator finish, or remove the label from the nodes once the old agents are gone.",
    rule: "With the plain manifest install, an upgrade to the operator is recommended.",
    ...leftovers,
    run: (seen) => {
      const label = seen.names.labels.nodeMigration;
      return fail(linesOf(seen.leftovers, "half-migration"), `kubectl label nodes --all ${label}-`);
    },
  },
  {
    code: "RUN_IN_PROGRESS",
    title: "Another run of vendorctl is at work here",
    why: "Two at once would undo each other's steps.",
    fix: "Wait for it, or if it broke off: vendorctl resume, or vendorctl rollback",
    rule: "One procedure at a time.",
    group: "leftovers",
    for: ["running", ...CHANGES],
    // The lease itself decides who may start, and knows a holder that died.
    planned: CHANGES,
    run: ({ run }, { purpose, now }) => {
      if (!run) return OK;
      const renewed = Date.parse(run.renewed ?? "");
      const alive = Number.isFinite(renewed) && now - renewed < run.seconds * 1000;
      const evidence = [`held by ${run.holder}${run.renewed ? `, last heard of at ${run.renewed}` : ""}`];
      if (!alive)
        return purpose === "running"
          ? warn([...evidence, "it broke off"], "vendorctl resume")
          : ok(`${evidence[0]}, which broke off`);
      return purpose === "running" ? warn(evidence, "vendorctl history") : fail(evidence, "vendorctl history");
    },
  },
];

function linesOf(leftovers: readonly SeenLeftover[], what: SeenLeftover["what"]): string[] {
  return some(leftovers.filter((one) => one.what === what).map(({ object, evidence }) => `${object}: ${evidence}`));
}
