import { ETCD_CNI_IMAGE } from "../../releases/node-agent-objects.ts";
import type { Container, Pod } from "../controllers/workload-types.ts";
import { isOnEtcd } from "../programs/on-etcd.ts";
import type { ContainerRule } from "../runtime/simulated-behaviour.ts";

/** For the simulated runtime: what containers do other than being healthy. With the etcd datastore node pods are `1/2`, and that is expected. */
export const installedImageRules: readonly ContainerRule[] = [
  [new RegExp(`/${ETCD_CNI_IMAGE}:`), "never-ready"],
  [followsServicesOnEtcd, "never-ready"],
];

/** Ready when the agent next to it watches the cluster's services, which it cannot on etcd. */
function followsServicesOnEtcd(pod: Pod, container: Container): boolean {
  const probe = container["readinessProbe"] as { httpGet?: { path?: string } } | undefined;
  return probe?.httpGet?.path === "/readyz/services" && pod.spec.containers.some(isOnEtcd);
}
