import { SERVICE_PROXY } from "../../api/tables/kube-proxy.ts";
import { EBPF_PROBLEMS } from "../../api/validation/ebpf.ts";
import { kindOf } from "../cluster-facts.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation } from "../observation.ts";
import { isEbpfOn, leavesProxyRules } from "../plans/cluster-view.ts";
import { BEFORE_EBPF, type Check, fail, OK, ok, skip, some, warn } from "./check.ts";
import { patchCommand } from "./commands.ts";

const ebpf = { for: BEFORE_EBPF, ebpfOnly: true, group: "kube-proxy" } as const;
const CONFLICT = EBPF_PROBLEMS.SERVICE_PROXY_CONFLICT.rule;
const HEALTH_PORT = 10256;

const runs = ({ proxy }: Observation) => proxy.daemonSet !== undefined && proxy.parked === undefined;
const says = (seen: Observation) =>
  runs(seen)
    ? `${seen.names.serviceProxy.daemonSet} runs on ${seen.proxy.pods.ready} of ${seen.proxy.pods.wanted} nodes`
    : "kube-proxy does not run";

export const SERVICE_PROXY_CHECKS: readonly Check[] = [
  {
    code: "SERVICE_PROXY_IPVS",
    ...EBPF_PROBLEMS.SERVICE_PROXY_IPVS,
    ...ebpf,
    for: ["running", "install", "switch", "proxy"],
    planned: ["install", "switch", "proxy"],
    run: (seen, { purpose }) => {
      const { proxy, names } = seen;
      if (!runs(seen)) return ok(says(seen));
      const { configMap, daemonSet } = names.serviceProxy;
      const fix = `set mode to iptables in ConfigMap kube-system/${configMap} (or in the platform's setting), then: kubectl -n kube-system rollout restart daemonset ${daemonSet}`;
      if (proxy.mode !== "ipvs") return ok(proxy.modeEvidence);
      const first = purpose === "install" || purpose === "switch";
      return fail([proxy.modeEvidence], first ? `vendorctl ${purpose} does it first; manually: ${fix}` : fix);
    },
  },
  {
    code: "SERVICE_PROXY_KEPT_BY_OTHERS",
    title: "Another tool manages kube-proxy",
    why: "That tool reverts changes to kube-proxy, which then conflicts with eBPF.",
    fix: "Disable kube-proxy in that tool.",
    rule: SERVICE_PROXY.aks.because,
    ...ebpf,
    for: ["running", "install", "switch", "proxy"],
    run: (seen) => {
      const { owner } = seen.proxy;
      if (!runs(seen) || !owner) return OK;
      const { action } = SERVICE_PROXY[kindOf(seen)].afterInstall;
      if (action === "leave-its-rules-alone") return ok(`managed by ${owner.who}; its rules are kept`);
      return warn([`managed by ${owner.who}`], owner.how);
    },
  },
  {
    code: "SERVICE_PROXY_OF_CLUSTER_TOOL",
    title: "Cluster tool manages kube-proxy",
    why: "The tool writes kube-proxy again at every update; only its own configuration lasts.",
    fix: "Disable kube-proxy in the tool's configuration, then run its update.",
    rule: SERVICE_PROXY.iac.because,
    ...ebpf,
    for: ["install", "switch", "proxy"],
    run: (seen) => {
      const { action, how } = SERVICE_PROXY[kindOf(seen)].afterInstall;
      if (action !== "disable-in-cluster-configuration" || !runs(seen)) return OK;
      return warn([says(seen)], `${how}; vendorctl waits for it`);
    },
  },
  {
    code: "SERVICE_PROXY_STAYS",
    title: "kube-proxy cannot be disabled",
    why: "It was chosen when the cluster was created; while it runs, eBPF must keep its rules.",
    fix: "Keep its rules, or create the cluster without kube-proxy.",
    rule: SERVICE_PROXY.mke.because,
    ...ebpf,
    for: ["install", "switch", "proxy"],
    run: (seen) => {
      const row = SERVICE_PROXY[kindOf(seen)];
      if (row.afterInstall.action !== "not-shown" || !runs(seen)) return OK;
      return warn([says(seen), row.atInstall.how], leaveRules(seen));
    },
  },
  {
    code: "SERVICE_PROXY_CONFLICT",
    ...EBPF_PROBLEMS.SERVICE_PROXY_CONFLICT,
    ...ebpf,
    for: ["running", "upgrade"],
    run: (seen) => {
      if (!isEbpfOn(seen)) return skip("eBPF is not enabled yet");
      if (leavesProxyRules(seen)) return ok(runs(seen) ? "its rules are kept" : says(seen));
      // One that no daemon set runs, a service of the node itself, only its node's agent can know.
      const fought = seen.service.agents.flatMap(({ node, report: { proxyRules } }) =>
        typeof proxyRules === "object" ? [`node ${node}: conflict: ${proxyRules.conflict}`] : [],
      );
      if (!runs(seen)) {
        return fought.length > 0 ? fail(some(fought), leaveRules(seen)) : ok(says(seen));
      }
      const { action } = SERVICE_PROXY[kindOf(seen)].afterInstall;
      const stays = action === "leave-its-rules-alone" || action === "not-shown";
      return fail([says(seen), "its rules are being removed"], stays ? leaveRules(seen) : "vendorctl proxy disable");
    },
  },
  {
    code: "SERVICE_PROXY_RULES_KEPT",
    title: "Rules of a removed kube-proxy are kept",
    why: "The old rules still match traffic of Services that have changed since.",
    fix: "Set bpfServiceProxyIptablesCleanupEnabled to true.",
    rule: CONFLICT,
    ...ebpf,
    for: ["running", "upgrade"],
    run: (seen) => {
      if (!isEbpfOn(seen) || runs(seen) || !leavesProxyRules(seen)) return OK;
      const { iptablesCleanup } = seen.names.fields;
      return warn(
        [`${says(seen)}, and ${iptablesCleanup} is false`],
        patchCommand(seen.names, "dataplaneConfiguration", iptablesCleanup, true),
      );
    },
  },
  {
    code: "SERVICE_PROXY_HEALTH_PORT",
    title: "Health port of Services is misconfigured",
    why: `Load balancers probe port ${HEALTH_PORT} of each node: exactly one program must serve it, or the node is taken out.`,
    fix: "Set serviceProxyHealthzPort of the data plane configuration.",
    rule: CONFLICT,
    ...ebpf,
    for: ["running"],
    run: (seen) => {
      if (!isEbpfOn(seen)) return skip("eBPF is not enabled yet");
      const { serviceProxyHealthzPort } = seen.names.fields;
      const set = fieldAt(seen.service.dataplaneConfiguration, serviceProxyHealthzPort);
      if (runs(seen) && typeof set === "number" && set === HEALTH_PORT) {
        const fix = patchCommand(seen.names, "dataplaneConfiguration", serviceProxyHealthzPort, 0);
        return warn([says(seen), `${serviceProxyHealthzPort} is ${set}`], fix);
      }
      if (!runs(seen) && set === 0) {
        const fix = patchCommand(seen.names, "dataplaneConfiguration", serviceProxyHealthzPort, HEALTH_PORT);
        return warn([says(seen), `${serviceProxyHealthzPort} is 0: port ${HEALTH_PORT} is not served`], fix);
      }
      return OK;
    },
  },
  {
    code: "SERVICE_PROXY_PARKED_WITHOUT_EBPF",
    title: "Services are not served",
    why: "kube-proxy is disabled and eBPF is not enabled: connections to cluster IPs fail on every node.",
    fix: "vendorctl proxy restore",
    rule: "Either eBPF or kube-proxy serves Services. See docs/guide/kube-proxy-replacement.md.",
    group: "kube-proxy",
    for: ["running", "upgrade"],
    run: (seen) => {
      if (!seen.proxy.parked) return OK;
      if (isEbpfOn(seen)) return ok("eBPF serves Services");
      return fail(
        [`${seen.names.serviceProxy.daemonSet} is disabled (${seen.proxy.parked}), and the data plane is not eBPF`],
        "vendorctl proxy restore",
      );
    },
  },
  {
    code: "SERVICE_PROXY_NOT_READY",
    title: "kube-proxy is not ready",
    why: "On a node without kube-proxy and without eBPF, Services do not work.",
    fix: "kubectl -n kube-system get pods -l k8s-app=kube-proxy -o wide",
    rule: "Either eBPF or kube-proxy serves Services. See docs/guide/kube-proxy-replacement.md.",
    group: "kube-proxy",
    for: ["running", "switch", "proxy"],
    run: (seen) => {
      const { wanted, ready } = seen.proxy.pods;
      if (!runs(seen) || ready >= wanted) return ok(says(seen));
      return warn(
        [says(seen)],
        `kubectl -n kube-system get pods -l k8s-app=${seen.names.serviceProxy.daemonSet} -o wide`,
      );
    },
  },
];

function leaveRules({ names }: Observation): string {
  return patchCommand(names, "dataplaneConfiguration", names.fields.iptablesCleanup, false);
}
