import type { Container } from "../controllers/workload-types.ts";

/** Whether a container of ours keeps its objects in etcd. Simulated nodes have none, so there what it does is simulated too. */
export function isOnEtcd(container: Container): boolean {
  const env = (container["env"] ?? []) as { name: string; value?: string }[];
  return env.some(({ name, value }) => name === "DATASTORE_TYPE" && value === "etcd");
}
