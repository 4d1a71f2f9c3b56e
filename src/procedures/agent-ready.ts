import type { Names } from "../api/names.ts";
import type { Refusal } from "../api/protocol/agent-report.ts";
import type { SeenService } from "./observation.ts";

type Agent = SeenService["agents"][number];

/** Plain manifests with etcd: node pods have a container that is expected not to be ready, and refuse eBPF. */
export function isOnEtcd({ method, datastore }: Pick<SeenService, "method" | "datastore">): boolean {
  return method === "manifest" && datastore === "etcd";
}

/** Whether a node agent's pod is as it should be: with plain manifests and etcd one container is expected not to be ready. */
export function isAgentHealthy(
  agent: Agent,
  service: Pick<SeenService, "method" | "datastore">,
  names: Names,
): boolean {
  if (agent.phase !== "Running") return false;
  const [ready, all] = agent.ready.split("/");
  if (ready === all) return true;
  return isOnEtcd(service) && agent.ready === names.ready.etcdDatastore;
}

/** Agents whose kernel refused the programs, with the reason. */
export function refusingAgents(agents: readonly Agent[]): (Agent & { refused: Refusal })[] {
  return agents.flatMap((agent) => {
    const { programs } = agent.report;
    return typeof programs === "object" ? [{ ...agent, refused: programs.refused }] : [];
  });
}
