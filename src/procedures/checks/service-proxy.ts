import { SERVICE_PROXY } from "../../api/service-proxy.ts";
import { EBPF_PROBLEMS } from "../../api/validation/ebpf.ts";
import { kindOf } from "../cluster-facts.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation } from "../observation.ts";
import { isEbpfOn, leavesProxyRules } from "../plans/cluster-view.ts";
import { BEFORE_EBPF, type Check, fail, OK, ok, skip, some, warn } from "./check.ts";
import { patchCommand } from "./commands.ts";

const ebpf = { for: BEFORE_EBPF, ebpfOnly: true, group: "service proxy" } as const;
const CONFLICT = EBPF_PROBLEMS.SERVICE_PROXY_CONFLICT.rule;
const HEALTH_PORT = 10256;

const runs = ({ proxy }: Observation) => proxy.daemonSet !== undefined && proxy.parked === undefined;
const says = (seen: Observation) =>
  runs(seen)
    ? `${seen.names.serviceProxy.daemonSet} runs on ${seen.proxy.pods.ready} of ${seen.proxy.pods.wanted} nodes`
    : "the service proxy does not run";

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
      const fix = `set mode to iptables in the config map kube-system/${configMap} (or the platform's setting), then: kubectl -n kube-system rollout restart daemonset ${daemonSet}`;
      if (proxy.mode !== "ipvs") return ok(proxy.modeEvidence);
      const first = purpose === "install" || purpose === "switch";
      return fail([proxy.modeEvidence], first ? `vendorctl ${purpose} does it first; by hand: ${fix}` : fix);
    },
  },
  {
    code: "SERVICE_PROXY_KEPT_BY_OTHERS",
    title: "Another tool keeps the service proxy as it is",
    why: "A change made by hand is undone by whoever keeps the proxy, and then both fight for the node's rules.",
    fix: "Make the change in the tool that keeps it.",
    rule: SERVICE_PROXY.aks.because,
    ...ebpf,
    for: ["running", "install", "switch", "proxy"],
    run: (seen) => {
      const { owner } = seen.proxy;
      if (!runs(seen) || !owner) return OK;
      const { action } = SERVICE_PROXY[kindOf(seen)].afterInstall;
      if (action === "leave-its-rules-alone") return ok(`kept by ${owner.who}; its rules are left alone`);
      return warn([`kept by ${owner.who}`], owner.how);
    },
  },
  {
    code: "SERVICE_PROXY_OF_CLUSTER_TOOL",
    title: "The service proxy belongs to the tool that made the cluster",
    why: "The tool writes the proxy anew at every update; only its own configuration lasts.",
    fix: "Disable it in the tool's configuration, and run the tool's update.",
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
    title: "The service proxy cannot be disabled on this cluster",
    why: "It was chosen when the cluster was made; beside a running proxy the service must leave its rules alone.",
    fix: "Leave its rules alone, or make the cluster anew without the proxy.",
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
      if (!isEbpfOn(seen)) return skip("eBPF does not act yet");
      if (leavesProxyRules(seen)) return ok(runs(seen) ? "its rules are left alone" : says(seen));
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
    title: "Rules of a service proxy that is gone are kept",
    why: "Nothing removes the old rules, and they still take traffic for services that have changed since.",
    fix: "Let the agents remove them.",
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
    title: "The health port of services is held by two, or by nobody",
    why: `Load balancers ask port ${HEALTH_PORT} of each node: two programs cannot both answer, and a port nobody answers takes the node out.`,
    fix: "Give the port to whoever serves services.",
    rule: CONFLICT,
    ...ebpf,
    for: ["running"],
    run: (seen) => {
      if (!isEbpfOn(seen)) return skip("eBPF does not act yet");
      const { serviceProxyHealthzPort } = seen.names.fields;
      const set = fieldAt(seen.service.dataplaneConfiguration, serviceProxyHealthzPort);
      if (runs(seen) && typeof set === "number" && set === HEALTH_PORT) {
        const fix = patchCommand(seen.names, "dataplaneConfiguration", serviceProxyHealthzPort, 0);
        return warn([says(seen), `${serviceProxyHealthzPort} is ${set}`], fix);
      }
      if (!runs(seen) && set === 0) {
        const fix = patchCommand(seen.names, "dataplaneConfiguration", serviceProxyHealthzPort, HEALTH_PORT);
        return warn([says(seen), `${serviceProxyHealthzPort} is 0: nobody answers port ${HEALTH_PORT}`], fix);
      }
      return OK;
    },
  },
  {
    code: "SERVICE_PROXY_PARKED_WITHOUT_EBPF",
    title: "The service proxy is parked, and eBPF does not serve in its stead",
    why: "Nobody keeps services working: connections to cluster IPs fail on every node.",
    fix: "Bring the proxy back.",
    rule: "service proxy disabled: remove the node selector; service proxy running",
    group: "service proxy",
    for: ["running", "upgrade"],
    run: (seen) => {
      if (!seen.proxy.parked) return OK;
      if (isEbpfOn(seen)) return ok("eBPF serves");
      return fail(
        [`${seen.names.serviceProxy.daemonSet} is parked (${seen.proxy.parked}), and the data plane is not eBPF`],
        "vendorctl proxy restore",
      );
    },
  },
  {
    code: "SERVICE_PROXY_NOT_READY",
    title: "The service proxy does not run everywhere it should",
    why: "Where it does not run and eBPF does not act, services do not work.",
    fix: "See why its pods do not start.",
    rule: "Service proxy: running, or disabled by a non-matching node selector.",
    group: "service proxy",
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
