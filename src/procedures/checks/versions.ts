import { customResourceDefinitions } from "../../api/schema/crd.ts";
import { compareVersions, formatVersion, parseVersion, sameLine } from "../../api/tables/version.ts";
import { supportsUpgrade, UPGRADE_PROBLEMS, VERSION_GATES } from "../../api/tables/version-gates.ts";
import { FLOW_PROBLEMS, flowResourceProblems } from "../../api/validation/flow-resources.ts";
import type { Observation } from "../observation.ts";
import { definitionHash } from "../observe/definition-hash.ts";
import { type Check, fail, fromTable, OK, ok, skip, some, warn } from "./check.ts";

const CLI_RULE = "vendorctl writes to clusters of its own minor version only. See docs/guide/check.md#version.";

/** Whether the upgrade procedure may take this cluster to this tool's version. */
const PATH_CHECKS = fromTable(UPGRADE_PROBLEMS, (code) => ({
  group: "versions",
  for: ["upgrade"],
  run: ({ service, tool }) => {
    if (service.method === "none") return skip("the service is not installed");
    const support = supportsUpgrade(service.version ?? "", tool.version);
    if (support.supported || support.code !== code) return OK;
    return fail([support.message, `read from ${service.versionEvidence}`], support.fix);
  },
}));

export const VERSION_CHECKS: readonly Check[] = [
  ...PATH_CHECKS,
  {
    code: "TOOL_VERSION_DIFFERS",
    title: "vendorctl and cluster versions differ",
    why: "A vendorctl of another version may write data the cluster misreads.",
    fix: "Use vendorctl of the cluster's version, or run: vendorctl upgrade",
    rule: CLI_RULE,
    group: "versions",
    for: ["running", "switch", "proxy", "migrate", "flows"],
    run: ({ service, tool }, { purpose }) => {
      const difference = versionDifference(service.version, tool.version);
      if (difference === undefined) return skip("the cluster has no version");
      if (difference === "same line") return ok(`${tool.version} and ${service.version}`);
      const evidence = [`vendorctl is ${tool.version}, the cluster ${service.version} (${service.versionEvidence})`];
      const get = `get vendorctl ${lineOf(service.version)}, or run: vendorctl upgrade`;
      if (difference === "cluster newer") return fail(evidence, `get vendorctl ${lineOf(service.version)}`);
      return purpose === "switch" ? fail(evidence, get) : warn(evidence, get);
    },
  },
  {
    code: "DEFINITIONS_SKEW",
    title: "CRDs have another version",
    why: "Older CRDs drop new fields silently, and Helm does not upgrade CRDs.",
    fix: "kubectl apply --server-side --force-conflicts -f operator-crds.yaml",
    rule: "CRDs are upgraded before the operator. See docs/guide/upgrade.md.",
    group: "versions",
    for: ["running", "switch"],
    run: (seen) => definitionsSkew(seen),
  },
  {
    code: "DEFINITIONS_NOT_ESTABLISHED",
    title: "CRD is not established",
    why: "Its resources can be neither read nor written until the API server accepts the CRD.",
    fix: "kubectl describe crd NAME",
    rule: "CRDs are established before their resources. See docs/guide/upgrade.md.",
    group: "versions",
    for: ["running", "install", "switch", "upgrade"],
    run: ({ crds }) => {
      const not = crds.filter(({ established }) => !established).map(({ name }) => name);
      return not.length > 0 ? fail(some(not), `kubectl describe crd ${not[0]}`) : ok(`${crds.length} CRDs`);
    },
  },
  ...fromTable({ FLOW_RESOURCES_TOO_EARLY: FLOW_PROBLEMS.FLOW_RESOURCES_TOO_EARLY }, () => ({
    group: "versions",
    for: ["running", "flows"],
    run: ({ service, names }, { purpose }) => {
      const { flowLogs, flowUI, version } = service;
      if (purpose === "running" && !flowLogs && !flowUI) return skip("neither is enabled");
      const problems = flowResourceProblems(names.singleton, version ? { version } : {});
      return fail(
        problems.map(({ message }) => message),
        "vendorctl upgrade",
      );
    },
  })),
  ...fromTable({ FLOW_UI_NEEDS_LOGS: FLOW_PROBLEMS.FLOW_UI_NEEDS_LOGS }, () => ({
    group: "versions",
    for: ["running"],
    run: ({ service, names }) => {
      if (!service.flowUI || service.flowLogs) return OK;
      return fail(
        [`${names.kinds.flowUI.kind} exists, and ${names.kinds.flowLogs.kind} does not`],
        "vendorctl flows enable",
      );
    },
  })),
  {
    code: "OWNER_REFERENCES_AT_RISK",
    title: "Owners of objects will change their UIDs",
    why: "The garbage collector deletes objects whose owner's UID no longer exists. vendorctl upgrade saves and restores the references; with another tool, run vendorctl migrate owner-references.",
    fix: "vendorctl upgrade",
    rule: "From v3.28 on v3 resources have new UIDs. See docs/guide/owner-references.md.",
    group: "versions",
    for: ["upgrade"],
    run: (seen) => {
      const { service, owned } = seen;
      const from = parseVersion(service.version ?? "");
      const gate = parseVersion(VERSION_GATES.resourceUids.version)!;
      if (!from || compareVersions(from, gate) >= 0) return ok("UIDs of v3 resources do not change in this upgrade");
      if (!owned) return skip("owned objects were not read");
      const lines = owned.map(({ kind, namespace, name, reference }) => {
        return `${kind} ${namespace ? `${namespace}/` : ""}${name} is owned by ${reference.kind} ${reference.name}`;
      });
      return warn(some(lines));
    },
  },
];

export type VersionDifference = "same line" | "cluster older" | "cluster newer";

/** The tool writes to clusters of its own minor version only; it reads any. */
export function versionDifference(cluster: string | undefined, tool: string): VersionDifference | undefined {
  const [there, here] = [parseVersion(cluster ?? ""), parseVersion(tool)];
  if (!there || !here) return undefined;
  if (sameLine(there, here)) return "same line";
  return compareVersions(there, here) < 0 ? "cluster older" : "cluster newer";
}

/** The line a version is of, such as v3.27, which is what a tool is chosen by. */
export function lineOf(version: string | undefined): string {
  const parsed = parseVersion(version ?? "");
  return parsed ? formatVersion({ major: parsed.major, minor: parsed.minor }) : (version ?? "");
}

function definitionsSkew(seen: Observation) {
  const { crds, names, service, tool } = seen;
  if (crds.length === 0) return skip("there are no CRDs yet");
  if (names.dialect !== "vendor") return skip("the CRDs of these names are not built in");
  if (service.method === "manifest" || service.method === "none") return skip("only the operator's CRDs are compared");
  if (versionDifference(service.version, tool.version) !== "same line") {
    return skip(`this vendorctl knows the CRDs of ${lineOf(tool.version)} only`);
  }
  const there = new Map(crds.map(({ name, hash }) => [name, hash]));
  const lines = customResourceDefinitions().flatMap((definition) => {
    const { name } = definition.metadata;
    const hash = there.get(name);
    if (hash === undefined) return [`${name} is missing`];
    return hash === definitionHash(definition) ? [] : [`${name} differs from ${tool.version}'s`];
  });
  return lines.length > 0 ? warn(some(lines)) : ok(`${crds.length} CRDs`);
}
