import type { Installation } from "../../api/resources/installation.ts";
import { EBPF_PROBLEMS } from "../../api/validation/ebpf.ts";
import { INSTALLATION_PROBLEMS, installationProblems } from "../../api/validation/installation.ts";
import { clusterFacts } from "../cluster-facts.ts";
import { fieldAt } from "../field-at.ts";
import { type Check, fail, fromTable, OK, ok, skip, warn } from "./check.ts";
import { patchCommand } from "./commands.ts";
import { versionDifference } from "./versions.ts";

/** What the operator would refuse, said before it does. */
const RESOURCE_CHECKS = fromTable(INSTALLATION_PROBLEMS, (code) => ({
  group: "installation",
  for: ["running", "switch", "upgrade"],
  run: (seen) => {
    const { service, names, kind } = seen;
    const { installation } = service;
    if (!installation) return skip("there is no installation yet");
    // The public system's resource has other fields; its own operator validates them.
    if (names.dialect !== "vendor") return skip("validated by its own operator");
    // The kind the platform shows, not the one it is taken for: the installation may say it where nothing shows it.
    const { kind: _taken, ...facts } = clusterFacts(seen);
    const known = kind.detected ? { ...facts, kind: kind.detected } : facts;
    const problems = installationProblems(installation as unknown as Installation, known);
    const found = problems.filter((problem) => problem.code === code);
    return fail(
      found.map(({ message }) => message),
      found[0]?.fix,
    );
  },
}));

export const INSTALLATION_CHECKS: readonly Check[] = [
  {
    code: "NOT_INSTALLED",
    title: "Service is not installed",
    why: "There is nothing to check, switch or upgrade.",
    fix: "vendorctl install",
    rule: "The service is installed by vendorctl or by its operator. See docs/guide/install.md.",
    group: "installation",
    for: ["running", "switch", "upgrade"],
    run: ({ service, names }, { purpose }) => {
      if (service.method !== "none") return ok(`by ${service.method}${service.version ? `, ${service.version}` : ""}`);
      const evidence = [`no ${names.kinds.installation.kind}, no operator and no node agents`];
      return purpose === "running" ? warn(evidence) : fail(evidence);
    },
  },
  {
    code: "ALREADY_INSTALLED",
    title: "Service is installed already",
    why: "Installing over another version or method leaves parts of both.",
    fix: "vendorctl upgrade",
    rule: "An installed service is upgraded, from v3.15 or later. See docs/guide/upgrade.md.",
    group: "installation",
    for: ["install"],
    planned: ["install"],
    run: ({ service, tool }) => {
      if (service.method === "none") return ok("nothing is installed");
      const evidence = `${service.version ?? "an unknown version"}, by ${service.method}`;
      return service.method !== "manifest" && versionDifference(service.version, tool.version) === "same line"
        ? ok(`${evidence}; install completes it`)
        : fail([evidence]);
    },
  },
  ...RESOURCE_CHECKS,
  {
    code: "EBPF_HOST_PORTS_SET",
    ...EBPF_PROBLEMS.EBPF_HOST_PORTS_SET,
    group: "installation",
    for: ["running", "switch"],
    ebpfOnly: true,
    run: ({ service, names }, { purpose }) => {
      const { hostPorts } = names.fields;
      const set = fieldAt(service.installation, hostPorts);
      if (set === undefined || set === null) return OK;
      const evidence = [`${hostPorts} is ${JSON.stringify(set)}`];
      const fix = patchCommand(names, "installation", hostPorts, null);
      // The switch itself sets it to null; host ports are then served by eBPF.
      return purpose === "switch" ? warn([...evidence, "the switch sets it to null"], fix) : fail(evidence, fix);
    },
  },
  {
    code: "OPERATOR_MISSING",
    title: "Operator is missing",
    why: "Changes to the Installation have no effect, and drift is not corrected.",
    fix: "vendorctl install",
    rule: "The operator reconciles the custom resources. See docs/guide/operator.md.",
    group: "installation",
    // An uninstall copes without it.
    for: ["running", "switch", "upgrade"],
    run: ({ service, names }) => {
      if (!service.installation) return skip("there is no installation");
      if (service.operator) return ok(`${service.operator.metadata.namespace}/${service.operator.metadata.name}`);
      return fail([`no Deployment ${names.workloads.operator} in any namespace`]);
    },
  },
];
