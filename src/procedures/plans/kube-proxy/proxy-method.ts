import { viewServiceProxy } from "../../../api/protocol/kube-proxy-view.ts";
import { SERVICE_PROXY } from "../../../api/tables/kube-proxy.ts";
import type { Workload } from "../../../api/workload-objects.ts";
import { kindOf } from "../../cluster-facts.ts";
import type { Observation } from "../../observation.ts";

/** How the service proxy of one cluster is disabled and brought back: the specification's table, with what was found there. */
export type ProxyMethod =
  /** There is none; `back` is how one would come, where there is a way. */
  | { way: "absent"; back: string | undefined }
  /** A node selector that matches no node. */
  | { way: "park" }
  /** The cluster tool's configuration, and its update. */
  | { way: "cluster-configuration" }
  /** It stays, and its rules are left alone. */
  | { way: "leave-rules"; because: string }
  /** Another tool manages it: that tool is used. */
  | { way: "owner"; who: string; how: string };

export function proxyMethod(observation: Observation): ProxyMethod {
  const { proxy, names } = observation;
  const row = SERVICE_PROXY[kindOf(observation)];
  const { action } = row.afterInstall;
  const view = viewServiceProxy(proxy.daemonSet as Workload | undefined, names);
  if (action === "disable-in-cluster-configuration") {
    return { way: "cluster-configuration" };
  }
  if (view.is === "absent") return { way: "absent", back: action === "park-by-node-selector" ? BOOTSTRAP : undefined };
  switch (action) {
    case "leave-its-rules-alone":
      return { way: "leave-rules", because: row.because };
    case "not-shown":
    case "none":
      return { way: "leave-rules", because: `${row.because} ${CONFLICT}` };
    case "park-by-node-selector":
      return view.owner ? { way: "owner", ...view.owner } : { way: "park" };
  }
}

/** Of the bootstrap tool: makes the add-on that was left out when the cluster was made. */
const BOOTSTRAP = "kubeadm init phase addon kube-proxy --config FILE";

export const CONFLICT =
  "If kube-proxy runs while eBPF removes its rules, the two conflict: disable kube-proxy, or set bpfServiceProxyIptablesCleanupEnabled to false. See docs/guide/kube-proxy-replacement.md#if-kube-proxy-comes-back.";
