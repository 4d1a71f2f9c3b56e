import type { Names, Noun } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { Workload } from "../api/workload-objects.ts";
import type { Client } from "../cluster/client.ts";
import { DAEMON_SETS } from "../cluster/kinds.ts";
import { nodeAgentsAmong } from "./observe/cluster-objects.ts";
import { createReader, type Reader } from "./observe/reader.ts";
import { versionOf } from "./observe/see-service.ts";

export interface ServiceVersion {
  /** Undefined where nothing of the service is installed. */
  version: string | undefined;
  versionEvidence: string;
}

/** The version of the service a cluster has, with few questions. */
export async function readServiceVersion(client: Client, names: Names, signal?: AbortSignal): Promise<ServiceVersion> {
  const reader = createReader(client, names.groups.served.group, signal);
  const clusterInformation = await theOne(reader, names, "clusterInformation", "stored");
  const installation = clusterInformation ? undefined : await theOne(reader, names, "installation", "operator");
  const lists = [names.workloads.node, names.workloads.overlayNode].map((name) =>
    reader.list<Workload>(DAEMON_SETS, { fieldSelector: `metadata.name=${name}` }),
  );
  const nodeAgents = nodeAgentsAmong((await Promise.all(lists)).flat(), names);
  return versionOf({ clusterInformation, installation, nodeAgents, operator: undefined }, names);
}

function theOne(
  reader: Reader,
  names: Names,
  noun: Noun,
  place: "stored" | "operator",
): Promise<KubeObject | undefined> {
  const { kind, plural } = names.kinds[noun];
  return reader.get({ ...names.groups[place], kind, plural, namespaced: false }, { name: names.singleton });
}
