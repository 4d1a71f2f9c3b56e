import { type Names, vendorNames } from "../names.ts";
import type { Workload } from "../workload-objects.ts";
import { rolledOut } from "./rollout.ts";

/** What there is to know of the orchestrator's service proxy. */
export type ProxyView =
  | { is: "absent" }
  | { is: "parked"; owner: ProxyOwner | undefined }
  /** Not parked; `ready` when its pods run on every node. */
  | { is: "running"; ready: boolean; owner: ProxyOwner | undefined };

/** Another tool that keeps the proxy as it says: a patch of ours would be undone, or fought over. */
export interface ProxyOwner {
  who: string;
  /** What to do there instead. */
  how: string;
}

export function viewServiceProxy(proxy: Workload | undefined, names: Names = vendorNames): ProxyView {
  if (!proxy) return { is: "absent" };
  const owner = proxyOwner(proxy, names);
  return parkedBy(proxy, names) ? { is: "parked", owner } : { is: "running", ready: rolledOut(proxy), owner };
}

/** The label of the node selector that keeps the proxy from every node, if there is one. */
export function parkedBy(proxy: Workload, names: Names = vendorNames): string | undefined {
  const { parkServiceProxy, managedParkServiceProxy } = names.labels;
  const selector = proxy.spec?.template?.spec?.nodeSelector ?? {};
  return [parkServiceProxy, managedParkServiceProxy].find(({ key, value }) => selector[key] === value)?.key;
}

function proxyOwner({ metadata }: Workload, names: Names): ProxyOwner | undefined {
  const { labels = {}, annotations = {} } = metadata;
  const { key, value } = names.labels.parkServiceProxy;
  const selector = `the node selector ${key}=${value} in its pod template`;
  const mode = labels["addonmanager.kubernetes.io/mode"];
  if (mode !== undefined) {
    return {
      who: `the platform's add-on manager (label addonmanager.kubernetes.io/mode=${mode})`,
      how: "disable the add-on in the platform",
    };
  }
  const tracking = annotations["argocd.argoproj.io/tracking-id"];
  if (tracking !== undefined) {
    return {
      who: `Argo CD (${tracking})`,
      how: `add ${selector} to the application's source, then run: argocd app sync ${tracking.split(":")[0]}`,
    };
  }
  const release = annotations["meta.helm.sh/release-name"];
  if (release !== undefined) {
    const namespace = annotations["meta.helm.sh/release-namespace"] ?? "kube-system";
    return {
      who: `the Helm release ${namespace}/${release}`,
      how: `add ${selector} to the release's values, then run: helm upgrade -n ${namespace} ${release}`,
    };
  }
  const tool = labels["app.kubernetes.io/managed-by"];
  return tool === undefined
    ? undefined
    : { who: `${tool} (label app.kubernetes.io/managed-by)`, how: `add ${selector} with that tool` };
}
