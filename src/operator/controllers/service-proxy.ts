import { vendorNames } from "../../api/names.ts";
import { parkedBy } from "../../api/protocol/kube-proxy-view.ts";
import type { InstallationSpec } from "../../api/resources/installation.ts";
import { DAEMON_SETS } from "../../cluster/kinds.ts";
import { MANAGER } from "../apply.ts";
import { serviceProxyMode } from "../cluster-facts.ts";
import { isLeaving, type Observed, serviceProxyOf, theOne } from "../observed.ts";
import { absent, degraded, notInstalled, type Outcome, progressing, ready } from "../outcome.ts";
import { planDataplane, viewDataplane } from "../plan-dataplane.ts";
import { type ProxyPlan, planServiceProxy } from "../plan-service-proxy.ts";
import type { ReconcileContext } from "../reconcile-context.ts";

const { parkServiceProxy } = vendorNames.labels;

/** The orchestrator's service proxy: released only when eBPF serves everywhere, and back before it stops. */
export async function reconcileServiceProxy(observed: Observed, hands: ReconcileContext): Promise<Outcome> {
  const installation = theOne(observed.installations);
  const spec = installation?.status?.computed as InstallationSpec | undefined;
  if (!installation) return absent();
  if (!spec?.clusterKind) return isLeaving(installation) ? absent() : progressing("the installation to be accepted");
  const wanted = !isLeaving(installation) && spec.vendorNetwork?.linuxDataplane === "BPF" ? "BPF" : "Nftables";
  const view = viewDataplane(observed, wanted, spec.clusterKind);
  const plan = planServiceProxy({
    kind: spec.clusterKind,
    managed: spec.vendorNetwork?.serviceProxyManagement === "Enabled",
    wanted,
    phase: planDataplane(view).at,
    nodesHeld: view.agents.some(({ held }) => held),
    mode: serviceProxyMode(observed),
    proxy: view.proxy,
    cleanup: theOne(observed.dataplaneConfigurations)?.spec.bpfServiceProxyIptablesCleanupEnabled,
    conflicts: view.agents.flatMap(({ node, proxyConflict }) => (proxyConflict ? [node] : [])),
  });
  await act(plan, observed, hands);
  return isLeaving(installation) && plan.do !== "restore" && plan.do !== "wait" ? absent() : outcomeOf(plan);
}

async function act(plan: ProxyPlan, observed: Observed, hands: ReconcileContext): Promise<void> {
  const proxy = serviceProxyOf(observed);
  if (!proxy) return;
  if (plan.do === "park") await select(hands, parkServiceProxy.key, parkServiceProxy.value);
  if (plan.do === "restore") await select(hands, parkedBy(proxy) ?? parkServiceProxy.key, null);
}

/** A merge patch, as a person would: applied, the selector would be ours whole, and the proxy's own would go with it. */
async function select({ tools }: ReconcileContext, key: string, value: string | null): Promise<void> {
  const patch = { spec: { template: { spec: { nodeSelector: { [key]: value } } } } };
  const ref = { namespace: vendorNames.namespaces.orchestratorSystem, name: vendorNames.serviceProxy.daemonSet };
  const written = await tools.client.patch(
    DAEMON_SETS,
    ref,
    { type: "merge", patch },
    { fieldManager: MANAGER, signal: tools.signal },
  );
  tools.onWrite("applied");
  tools.live.wrote(DAEMON_SETS, written);
  tools.log.info({ selector: key, value }, value === null ? "restored kube-proxy" : "disabled kube-proxy");
}

function outcomeOf(plan: ProxyPlan): Outcome {
  switch (plan.do) {
    case "park":
      return progressing("kube-proxy to be disabled");
    case "restore":
      return progressing("kube-proxy to be restored");
    case "leaveItsRules":
      return progressing("the data plane configuration to keep kube-proxy's rules");
    case "wait":
      return progressing(plan.for);
    case "unmanaged":
      return notInstalled(`serviceProxyManagement is Disabled. ${plan.next}`);
    case "refuse":
      return degraded(plan.reason, plan.message);
    case "nothing":
      return ready(`Nothing to do: ${plan.because}.`, [
        "DaemonSet kube-system/kube-proxy, and what agents see of its rules",
      ]);
  }
}
