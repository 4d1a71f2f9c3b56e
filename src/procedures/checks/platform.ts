import { CLUSTER_KINDS } from "../../api/tables/cluster-kinds.ts";
import { canWrite, parseOperatingSystem } from "../../api/tables/operating-system.ts";
import { kernelVerdict, PLATFORM_LIMITS } from "../../api/tables/platform-limits.ts";
import { DATAPLANE_PROBLEMS } from "../../api/validation/dataplane-configuration.ts";
import { EBPF_PROBLEMS, ebpfPlatformProblems } from "../../api/validation/ebpf.ts";
import { WARNING_PROBLEMS } from "../../api/validation/write-warnings.ts";
import { refusingAgents } from "../agent-ready.ts";
import { kindOf } from "../cluster-facts.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation, SeenUnsupported } from "../observation.ts";
import { BEFORE_EBPF, type Check, fail, ok, skip, some, warn } from "./check.ts";
import { patchCommand } from "./commands.ts";
import { unsupportedIn } from "./unsupported.ts";

const ebpf = { for: BEFORE_EBPF, ebpfOnly: true, group: "platform" } as const;

/** The platform constraints of eBPF. */
export const PLATFORM_CHECKS: readonly Check[] = [
  {
    code: "EBPF_CLUSTER_KIND",
    ...EBPF_PROBLEMS.EBPF_CLUSTER_KIND,
    ...ebpf,
    run: (seen) => {
      const signs = seen.nodes.flatMap(({ name, labels }) => {
        const label = Object.keys(labels).find((key) => UNSUPPORTED_SERVICES.some((prefix) => key.startsWith(prefix)));
        return label ? [`node ${name} has the label ${label}: a managed service eBPF is not supported on`] : [];
      });
      const { detected, evidence } = seen.kind;
      return signs.length > 0
        ? fail(some(signs))
        : ok(`${CLUSTER_KINDS[kindOf(seen)].title} (${detected ? evidence : "default: no platform was detected"})`);
    },
  },
  {
    code: "EBPF_KERNEL_TOO_OLD",
    ...EBPF_PROBLEMS.EBPF_KERNEL_TOO_OLD,
    ...ebpf,
    run: (seen) => {
      const linux = seen.nodes.filter(({ operatingSystem }) => operatingSystem !== "windows");
      const old = linux.flatMap((node) => {
        const verdict = kernelVerdict(node, kindOf(seen));
        if (verdict.ok) return [];
        return [`node ${node.name}: ${node.osImage}, kernel ${node.kernelVersion}; needs ${verdict.need}`];
      });
      return old.length > 0 ? fail(some(old)) : ok(`${linux.length} nodes`);
    },
  },
  {
    code: "EBPF_ARCHITECTURE",
    ...EBPF_PROBLEMS.EBPF_ARCHITECTURE,
    ...ebpf,
    run: (seen) => {
      const facts = { nodes: seen.nodes };
      const problems = ebpfPlatformProblems(facts).filter(({ code }) => code === "EBPF_ARCHITECTURE");
      return fail(some(problems.map(({ message }) => message)));
    },
  },
  {
    code: "EBPF_MIXED_CLUSTER",
    ...EBPF_PROBLEMS.EBPF_MIXED_CLUSTER,
    ...ebpf,
    run: (seen) => unsupported(seen, "windows", "mixed"),
  },
  {
    code: "EBPF_NEEDS_KUBE_DATASTORE",
    ...EBPF_PROBLEMS.EBPF_NEEDS_KUBE_DATASTORE,
    ...ebpf,
    run: ({ service, names }) =>
      service.datastore === "etcd"
        ? fail([`node agents use the etcd datastore (ConfigMap ${names.manifests.configMap})`])
        : ok(service.datastore === "unknown" ? "not installed yet" : "the Kubernetes API"),
  },
  {
    code: "CGROUP_PATH_NOT_WRITABLE",
    ...DATAPLANE_PROBLEMS.CGROUP_PATH_NOT_WRITABLE,
    ...ebpf,
    run: (seen) => {
      const { names, service } = seen;
      const { cgroupV2Path } = names.fields;
      const set = fieldAt(service.dataplaneConfiguration, cgroupV2Path);
      const other = fieldAt(service.dataplaneConfiguration, "spec.CgroupV2Path");
      const path = String(set ?? other ?? names.paths.cgroupV2);
      const refused = seen.nodes.filter((node) => !canWrite(parseOperatingSystem(node.osImage), path));
      const evidence = refused.map((node) => `node ${node.name}: ${path} cannot be written on ${node.osImage}`);
      const fix = patchCommand(names, "dataplaneConfiguration", cgroupV2Path, names.paths.cgroupV2);
      return refused.length > 0 ? fail(some(evidence), fix) : ok(path);
    },
  },
  {
    code: "EBPF_FLOATING_IPS",
    ...EBPF_PROBLEMS.EBPF_FLOATING_IPS,
    ...ebpf,
    run: (seen) => unsupported(seen, "floating-ip"),
  },
  { code: "EBPF_SCTP", ...EBPF_PROBLEMS.EBPF_SCTP, ...ebpf, run: (seen) => unsupported(seen, "sctp") },
  { code: "EBPF_VLAN", ...EBPF_PROBLEMS.EBPF_VLAN, ...ebpf, run: (seen) => unsupported(seen, "vlan") },
  {
    code: "EBPF_LOG_RULE",
    ...WARNING_PROBLEMS.EBPF_LOG_RULE,
    ...ebpf,
    run: (seen) => warn(unsupportedIn(seen, "log-rule")),
  },
  {
    code: "FOREIGN_NETWORK_PLUGIN",
    title: "Another CNI plugin is installed",
    why: "Two CNI plugins that set up pod interfaces and routes conflict.",
    fix: "Remove the other plugin, or, if it is one that spec.cni.type of the Installation knows, name it there.",
    rule: PLATFORM_LIMITS.clusterKind.because,
    group: "platform",
    for: ["running", "install", "switch"],
    run: (seen) => {
      const finding = unsupported(seen, "foreign-cni");
      // The overlay variants and policy-only are made to run with another plugin.
      const beside = seen.service.variant === "overlay" || seen.service.variant === "policy-only";
      return finding.status === "fail" && beside ? warn(finding.evidence) : finding;
    },
  },
  {
    code: "AGENT_PROGRAMS_REFUSED",
    title: "Kernel refuses the eBPF programs",
    why: "The agent loaded the real programs, and the verifier of this kernel refused them.",
    fix: "Update the node's kernel, or run: vendorctl switch --to standard",
    rule: PLATFORM_LIMITS.kernel.because,
    ...ebpf,
    run: ({ service }) => {
      if (service.agents.length === 0) return skip("no agent has loaded them yet");
      const refusing = refusingAgents(service.agents);
      return fail(some(refusing.map(({ node, pod, refused }) => `node ${node}: refused: ${refused.why} (pod ${pod})`)));
    },
  },
];

/** Managed services with a plugin of their own that we cannot run with, by the labels of their nodes. */
const UNSUPPORTED_SERVICES = ["cloud.google.com/gke-", "doks.digitalocean.com/"];

function unsupported(seen: Observation, ...what: SeenUnsupported["what"][]) {
  return fail(unsupportedIn(seen, ...what));
}
