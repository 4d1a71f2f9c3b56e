import type { Container, Pod } from "../controllers/workload-types.ts";

/** Where container runtimes look for a network configuration; the second is the one of OpenShift. */
export const CNI_CONF_DIRS = ["/etc/cni/net.d", "/var/run/multus/cni/net.d"] as const;

/** A node without a configuration, as a kubelet on containerd reports it: in its condition Ready and in the events of its pods. */
export const NETWORK_NOT_READY =
  "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";

/** Whether the container mounts such a directory of its node: a CNI mounts it to install its configuration, nothing else does. */
export function installsCni({ spec }: Pod, container: Container): boolean {
  const volumes = (spec["volumes"] as { name: string; hostPath?: { path: string } }[] | undefined) ?? [];
  const mounts = (container["volumeMounts"] as { name: string; readOnly?: boolean }[] | undefined) ?? [];
  return mounts.some(({ name, readOnly }) => {
    const path = volumes.find((volume) => volume.name === name)?.hostPath?.path.replace(/\/+$/, "");
    return readOnly !== true && CNI_CONF_DIRS.some((directory) => directory === path);
  });
}
