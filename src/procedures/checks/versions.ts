import { customResourceDefinitions } from "../../api/crd.ts";
import { FLOW_PROBLEMS, flowResourceProblems } from "../../api/validation/flow-resources.ts";
import { compareVersions, formatVersion, parseVersion, sameLine } from "../../api/version.ts";
import { supportsUpgrade, UPGRADE_PROBLEMS, VERSION_GATES } from "../../api/version-gates.ts";
import type { Observation } from "../observation.ts";
import { definitionHash } from "../observe/definition-hash.ts";
import { type Check, fail, fromTable, OK, ok, skip, some, warn } from "./check.ts";

const CLI_RULE = "Versioning 7: The command-line tool must match the new version after upgrade.";

/** Whether the upgrade procedure may take this cluster to this tool's version. */
const PATH_CHECKS = fromTable(UPGRADE_PROBLEMS, (code) => ({
  group: "versions",
  for: ["upgrade"],
  run: ({ service, tool }) => {
    if (service.method === "none") return skip("nothing is installed");
    const support = supportsUpgrade(service.version ?? "", tool.version);
    if (support.supported || support.code !== code) return OK;
    return fail([support.message, `read from ${service.versionEvidence}`], support.fix);
  },
}));

export const VERSION_CHECKS: readonly Check[] = [
  ...PATH_CHECKS,
  {
    code: "TOOL_VERSION_DIFFERS",
    title: "This tool is of another version than the cluster",
    why: "A tool of another version may write what the cluster's version misunderstands.",
    fix: "Use the tool of the cluster's version, or upgrade the cluster.",
    rule: CLI_RULE,
    group: "versions",
    for: ["running", "switch", "proxy", "migrate", "flows"],
    run: ({ service, tool }, { purpose }) => {
      const difference = versionDifference(service.version, tool.version);
      if (difference === undefined) return skip("the cluster tells no version");
      if (difference === "same line") return ok(`${tool.version} and ${service.version}`);
      const evidence = [
        `this is vendorctl ${tool.version}, and the cluster has ${service.version} (${service.versionEvidence})`,
      ];
      const get = `get vendorctl ${lineOf(service.version)}, or run: vendorctl upgrade`;
      if (difference === "cluster newer") return fail(evidence, `get vendorctl ${lineOf(service.version)}`);
      return purpose === "switch" ? fail(evidence, get) : warn(evidence, get);
    },
  },
  {
    code: "DEFINITIONS_SKEW",
    title: "The custom resource definitions are of another version",
    why: "Fields the older definitions do not know are dropped without a word; chart tools never upgrade definitions.",
    fix: "kubectl apply --server-side --force-conflicts -f operator-crds.yaml, of the version that runs",
    rule: "Upgrade: server-side apply with force-conflicts of operator-crds.yaml, CRDs first.",
    group: "versions",
    for: ["running", "switch"],
    run: (seen) => definitionsSkew(seen),
  },
  {
    code: "DEFINITIONS_NOT_ESTABLISHED",
    title: "A custom resource definition is not served",
    why: "Its resources can be neither read nor written until the API server accepts the definition.",
    fix: "kubectl describe crd NAME says what the API server has against it.",
    rule: "Upgrade: CRDs first.",
    group: "versions",
    for: ["running", "install", "switch", "upgrade"],
    run: ({ crds }) => {
      const not = crds.filter(({ established }) => !established).map(({ name }) => name);
      return not.length > 0 ? fail(some(not), `kubectl describe crd ${not[0]}`) : ok(`${crds.length} definitions`);
    },
  },
  ...fromTable({ FLOW_RESOURCES_TOO_EARLY: FLOW_PROBLEMS.FLOW_RESOURCES_TOO_EARLY }, () => ({
    group: "versions",
    for: ["running", "flows"],
    run: ({ service, names }, { purpose }) => {
      const { flowLogs, flowUI, version } = service;
      if (purpose === "running" && !flowLogs && !flowUI) return skip("neither is asked for");
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
        [`${names.kinds.flowUI.kind} is there, and ${names.kinds.flowLogs.kind} is not`],
        "vendorctl flows enable",
      );
    },
  })),
  {
    code: "OWNER_REFERENCES_AT_RISK",
    title: "Objects are owned by v3 resources whose UIDs will change",
    why: "The orchestrator's garbage collector deletes what is owned by a UID that no longer exists.",
    fix: "vendorctl upgrade saves and re-adds them; or first: vendorctl migrate owner-references",
    rule: "OwnerReferences in v3 resources: remove every OwnerReference whose apiGroup is the v3 group; upgrade; add new references with the new UIDs.",
    group: "versions",
    for: ["upgrade"],
    run: (seen) => {
      const { service, owned } = seen;
      const from = parseVersion(service.version ?? "");
      const gate = parseVersion(VERSION_GATES.resourceUids.version)!;
      if (!from || compareVersions(from, gate) >= 0) return ok("UIDs of v3 resources do not change in this upgrade");
      if (!owned) return skip("owned objects were not looked for");
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
  if (crds.length === 0) return skip("there are none yet");
  if (names.dialect !== "vendor") return skip("the definitions of this dialect are not built in");
  if (service.method === "manifest" || service.method === "none")
    return skip("only the operator's definitions are compared");
  if (versionDifference(service.version, tool.version) !== "same line") {
    return skip(`this tool knows the definitions of ${lineOf(tool.version)} only`);
  }
  const there = new Map(crds.map(({ name, hash }) => [name, hash]));
  const lines = customResourceDefinitions().flatMap((definition) => {
    const { name } = definition.metadata;
    const hash = there.get(name);
    if (hash === undefined) return [`${name} is missing`];
    return hash === definitionHash(definition) ? [] : [`${name} differs from ${tool.version}'s`];
  });
  return lines.length > 0 ? warn(some(lines)) : ok(`${crds.length} definitions`);
}
