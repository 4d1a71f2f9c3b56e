import type { Names } from "../../../api/names.ts";
import { parkedBy } from "../../../api/protocol/kube-proxy-view.ts";
import { SERVICE_PROXY } from "../../../api/tables/kube-proxy.ts";
import type { Workload } from "../../../api/workload-objects.ts";
import { CodedError } from "../../../kit/errors.ts";
import type { Settle } from "../../actions/objects/settle.ts";
import { nameOf } from "../../actions/objects/target.ts";
import { kindOf } from "../../cluster-facts.ts";
import type { Observation } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { atPath, serviceProxyTarget, singleton } from "../cluster-view.ts";
import { clusterToolCommands } from "../install/cluster-tool.ts";
import { applyObjectsStep, mergePatchStep, step, waitForRolloutStep, waitOutsideStep } from "../steps.ts";
import type { ProxyMethod } from "./proxy-method.ts";

const IPVS_RULE =
  "The virtual servers of IPVS mode stay in the kernel after kube-proxy is gone; rules of iptables mode are removed. See docs/guide/kube-proxy-replacement.md.";

/** kube-proxy out of IPVS mode: a step of its own, because it has its own undo. */
export function leaveIpvsStep(observation: Observation): Step {
  const { names, proxy } = observation;
  const said = {
    id: "leave-ipvs",
    title: "Switch kube-proxy to iptables mode",
    where: nameOf(serviceProxyTarget(names)),
    because: `${IPVS_RULE} (${proxy.modeEvidence})`,
    risk: "medium",
  } as const;
  const { modeChangedBy } = SERVICE_PROXY[kindOf(observation)];
  if (modeChangedBy === "platform") {
    const fix = "switch kube-proxy to iptables mode in the platform's configuration";
    const sentence = `kube-proxy runs in IPVS mode (${proxy.modeEvidence}).`;
    throw new CodedError("SERVICE_PROXY_IPVS", sentence, { fix, exitCode: 3 });
  }
  if (modeChangedBy === "vendorctl") return step("set-proxy-mode", said, { mode: "iptables" });
  const commands = clusterToolCommands(observation);
  return waitOutsideStep(
    { ...said, where: "your cluster tool" },
    {
      tell: commands.mode("iptables"),
      until: [commands.modeIs("iptables")],
      back: { tell: commands.mode("ipvs"), until: [commands.modeIs("ipvs")] },
    },
  );
}

/** Where the proxy stays: before eBPF acts, so that the two never fight. `create` where the configuration may not be there yet. */
export function leaveRulesStep({ names }: Observation, because: string, create: boolean): Step {
  const target = singleton(names, "dataplaneConfiguration", "stored");
  const patch = atPath(names.fields.iptablesCleanup, false);
  const said = {
    id: "leave-proxy-rules",
    title: "Keep kube-proxy's rules",
    where: `${nameOf(target)} ${names.fields.iptablesCleanup}`,
    because,
    risk: "low",
  } as const;
  if (!create) return mergePatchStep(said, { target, patch });
  const { name, ...type } = target;
  return applyObjectsStep(said, { objects: [{ ...type, metadata: { name }, ...patch }] });
}

/** The proxy off, where services are already served without it. */
export function disableProxySteps(observation: Observation, way: ProxyMethod): Step[] {
  const { names } = observation;
  const { because } = SERVICE_PROXY[kindOf(observation)];
  const target = serviceProxyTarget(names);
  switch (way.way) {
    case "absent":
    case "leave-rules":
      return [];
    case "park":
      return [parkStep(names, because)];
    case "cluster-configuration": {
      const commands = clusterToolCommands(observation);
      return [
        waitOutsideStep(
          {
            id: "disable-proxy",
            title: "Disable kube-proxy in the cluster tool",
            where: "your cluster tool",
            because,
            risk: "medium",
          },
          {
            tell: commands.enabled(false),
            until: [{ target, exists: false }],
            back: { tell: commands.enabled(true), until: [{ target, exists: true }] },
          },
        ),
      ];
    }
    case "owner":
      return [
        waitOutsideStep(
          {
            id: "disable-proxy",
            title: `Disable kube-proxy with its own tool`,
            where: way.who,
            because: `${because} ${way.who} would revert a patch.`,
            risk: "medium",
          },
          {
            tell: [sentence(way.how)],
            until: goneFrom(names),
            back: {
              tell: [`Remove the node selector ${names.labels.parkServiceProxy.key} again with ${way.who}.`],
              until: [{ target, path: selectorPath(names.labels.parkServiceProxy.key), equals: null }],
            },
          },
        ),
      ];
  }
}

/** The proxy on again, serving on every node when the last of these steps is over. */
export function restoreProxySteps(observation: Observation, way: ProxyMethod): Step[] {
  const { names, proxy } = observation;
  const target = serviceProxyTarget(names);
  const because = `kube-proxy must serve before eBPF stops serving. ${SERVICE_PROXY[kindOf(observation)].because}`;
  const serving = waitForRolloutStep(
    {
      id: "proxy-serves",
      title: "Wait for kube-proxy on every node",
      where: nameOf(target),
      because: "kube-proxy must serve before eBPF stops serving.",
    },
    { workload: target },
  );
  const outside = (title: string, where: string, tell: readonly string[], back: readonly string[]): Step =>
    waitOutsideStep(
      { id: "restore-proxy", title, where, because, risk: "low" },
      {
        tell,
        until: proxy.daemonSet
          ? [{ target, path: selectorPath(names.labels.parkServiceProxy.key), equals: null }]
          : [{ target, exists: true }],
        back: { tell: back, until: proxy.daemonSet ? goneFrom(names) : [{ target, exists: false }] },
      },
    );
  switch (way.way) {
    case "leave-rules":
      return [];
    case "park": {
      const label = parkedBy(proxy.daemonSet as Workload, names);
      return label === undefined ? [serving] : [unparkStep(names, label, because)];
    }
    case "cluster-configuration": {
      if (proxy.daemonSet) return [serving];
      const { enabled } = clusterToolCommands(observation);
      return [
        outside("Enable kube-proxy in the cluster tool", "your cluster tool", enabled(true), enabled(false)),
        serving,
      ];
    }
    case "owner":
      if (!proxy.parked) return [serving];
      return [
        outside(
          `Restore kube-proxy with its own tool`,
          way.who,
          [`Remove the node selector ${names.labels.parkServiceProxy.key} with ${way.who}.`],
          [sentence(way.how)],
        ),
        serving,
      ];
    case "absent":
      if (way.back === undefined) return [];
      return [
        outside(
          "Install kube-proxy",
          "your bootstrap tool",
          [way.back],
          [`kubectl -n ${target.namespace} delete daemonset ${target.name}`],
        ),
        serving,
      ];
  }
}

function parkStep(names: Names, because: string): Step {
  const target = serviceProxyTarget(names);
  const { key, value } = names.labels.parkServiceProxy;
  return mergePatchStep(
    {
      id: "park-proxy",
      title: `Disable kube-proxy`,
      where: nameOf(target),
      because,
      risk: "medium",
    },
    { target, patch: selectorPatch(key, value), afterApply: { expect: goneFrom(names) }, afterUndo: serves(names) },
  );
}

function unparkStep(names: Names, key: string, because: string): Step {
  const target = serviceProxyTarget(names);
  return mergePatchStep(
    {
      id: "restore-proxy",
      title: `Restore kube-proxy`,
      where: nameOf(target),
      because,
      risk: "low",
    },
    { target, patch: selectorPatch(key, null), afterApply: serves(names), afterUndo: { expect: goneFrom(names) } },
  );
}

const serves = (names: Names): Settle => ({ rollouts: [{ workload: serviceProxyTarget(names) }] });

/** Not wanted on any node, and running on none. */
function goneFrom(names: Names) {
  const target = serviceProxyTarget(names);
  return ["desiredNumberScheduled", "numberMisscheduled"].map((count) => ({
    target,
    path: ["status", count],
    equals: 0,
  }));
}

const selectorPath = (key: string) => ["spec", "template", "spec", "nodeSelector", key];
const selectorPatch = (key: string, value: string | null) => ({
  spec: { template: { spec: { nodeSelector: { [key]: value } } } },
});

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
