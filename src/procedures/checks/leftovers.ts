import type { Observation, SeenLeftover } from "../observation.ts";
import { ALWAYS, CHANGES, type Check, fail, OK, ok, some, warn } from "./check.ts";

const leftovers = { group: "leftovers", for: ALWAYS } as const;

export const LEFTOVER_CHECKS: readonly Check[] = [
  {
    code: "OLD_NAMESPACE",
    title: "Namespace of the service is left over",
    why: "Nothing can be created in a namespace that is Terminating; an old one serves no purpose.",
    fix: "kubectl get namespace NAME -o jsonpath={.status.conditions}",
    rule: "An uninstall and an upgrade leave no namespace behind. See docs/guide/install.md#uninstall.",
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
    title: "Finalizer blocks a deletion",
    why: "The controller that removes the finalizer may not run; until then the object can be neither used nor created again.",
    fix: "Start the controller that owns the finalizer; if it is gone for good, remove the finalizer.",
    rule: "The operator removes the finalizers, so it is removed last. See docs/guide/operator.md#remove.",
    ...leftovers,
    run: (seen) => fail(linesOf(seen.leftovers, "finalizer")),
  },
  {
    code: "STALE_API_SERVICE",
    title: "APIService without a server",
    why: "API discovery fails, and no namespace can be deleted while the APIService does not answer.",
    fix: "kubectl delete apiservice NAME",
    rule: "The APIService is removed before its server. See docs/guide/operator.md#remove.",
    ...leftovers,
    run: (seen) => {
      const { group, version } = seen.names.groups.served;
      return fail(linesOf(seen.leftovers, "api-service"), `kubectl delete apiservice ${version}.${group}`);
    },
  },
  {
    code: "HALF_MIGRATION",
    title: "Migration to the operator is not finished",
    why: "Old and new node agents run side by side; neither is rolled out to all nodes.",
    fix: "vendorctl resume, or vendorctl rollback. Without a run: remove the label once the old agents are gone: kubectl label nodes --all LABEL-",
    rule: "Nodes are labelled while agents of manifests are replaced by those of the operator. See docs/guide/migrate-operator.md.",
    ...leftovers,
    run: (seen) => {
      const label = seen.names.labels.nodeMigration;
      return fail(linesOf(seen.leftovers, "half-migration"), `kubectl label nodes --all ${label}-`);
    },
  },
  {
    code: "RUN_IN_PROGRESS",
    title: "Another vendorctl run is in progress",
    why: "Two runs at once would conflict. A run that was interrupted is continued with vendorctl resume or undone with vendorctl rollback.",
    fix: "vendorctl history",
    rule: "A Lease lets one run change a cluster at a time. See docs/guide/plans-and-runs.md#a-run.",
    group: "leftovers",
    for: ["running", ...CHANGES],
    // The lease itself decides who may start, and knows a holder that died.
    planned: CHANGES,
    run: ({ run }, { purpose, now }) => {
      if (!run) return OK;
      const alive = isHeld(run, now);
      const evidence = [`held by ${run.holder}${run.renewed ? `, last renewed at ${run.renewed}` : ""}`];
      if (!alive)
        return purpose === "running"
          ? warn([...evidence, "it was interrupted"], "vendorctl resume")
          : ok(`${evidence[0]}, which was interrupted`);
      return purpose === "running" ? warn(evidence, "vendorctl history") : fail(evidence, "vendorctl history");
    },
  },
];

/** Whether the process of a run renews its lease. */
export function isHeld(run: Observation["run"], now: number): boolean {
  const renewed = Date.parse(run?.renewed ?? "");
  return run !== undefined && Number.isFinite(renewed) && now - renewed < run.seconds * 1000;
}

function linesOf(leftovers: readonly SeenLeftover[], what: SeenLeftover["what"]): string[] {
  return some(leftovers.filter((one) => one.what === what).map(({ object, evidence }) => `${object}: ${evidence}`));
}
