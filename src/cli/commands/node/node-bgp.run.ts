import { randomBytes } from "node:crypto";
import { type Names, vendorNames } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import { installation } from "../../../api/resources/installation.ts";
import { type NodeStatus, nodeStatus } from "../../../api/resources/node-status.ts";
import { placesOf } from "../../../api/resources/resource.ts";
import type { Client } from "../../../cluster/client.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import { NODES } from "../../../cluster/kinds.ts";
import { sleep, systemClock } from "../../../kit/clock.ts";
import { withCluster } from "../../connect.ts";
import { errors } from "../../errors.ts";
import { nameSet } from "../../name-set.ts";
import { print } from "../../printer.ts";
import type { Session } from "../../session.ts";

type Status = NonNullable<NodeStatus["status"]>;

const ANSWER_MS = 15_000;
const ASK_AGAIN_MS = 250;

/** The sessions of one node, as its daemon has them at this moment. */
export async function nodeBgpSessions(session: Session, _options: unknown, node: string): Promise<void> {
  await withCluster(session, async (client, signal) => {
    const names = nameSet(session);
    await requireNode(client, node);
    if (!(await speaksBgp(client, names))) throw errors.BGP_NOT_ENABLED();
    const status = await ask(session, client, names, node, signal);
    const { agent, bgp } = status;
    const all = [...(bgp?.peersV4 ?? []), ...(bgp?.peersV6 ?? [])];
    await print(session, { node, ...status }, () => ({
      columns: ["PEER", "TYPE", "STATE", "SINCE", "INFO"],
      rows: all.map(({ peerIP, type, state, since, info }) => [
        ...[peerIP ?? "", type ?? "", state ?? ""],
        ...[since || "-", info || "-"],
      ]),
      empty: `no BGP sessions on ${node}`,
      optional: ["SINCE"],
    }));
    if (agent?.birdV4?.state === "NotReady") throw errors.NODE_DAEMON_SILENT(node);
  });
}

async function requireNode(client: Client, name: string): Promise<void> {
  try {
    await client.get(NODES, { name });
  } catch (error) {
    throw isNotFound(error) ? errors.NODE_UNKNOWN(name) : error;
  }
}

/** Without the field ours does not, and the public system does. */
async function speaksBgp(client: Client, names: Names): Promise<boolean> {
  const network = names.fields.linuxDataplane.split(".")[1] as string;
  try {
    const found = await client.get<KubeObject>(placesOf(installation, names).served, { name: names.singleton });
    const { bgp } = ((found["spec"] as Record<string, unknown>)[network] ?? {}) as { bgp?: string };
    return bgp === undefined ? names !== vendorNames : bgp === "Enabled";
  } catch (error) {
    if (isNotFound(error)) return names !== vendorNames;
    throw error;
  }
}

/** By an object of its own, so that the answer is new; nothing of it is left. */
async function ask(session: Session, client: Client, names: Names, node: string, signal: AbortSignal): Promise<Status> {
  const { clock = systemClock } = session;
  const kind = placesOf(nodeStatus, names).stored;
  const ref = { name: `vendorctl-${randomBytes(5).toString("hex")}` };
  const spec = { node, classes: ["Agent", "BGP"], updatePeriodSeconds: 0 };
  const type = { apiVersion: groupVersion(kind), kind: kind.kind };
  await client.create<KubeObject>(kind, { ...type, metadata: ref, spec });
  try {
    const deadline = clock.now() + ANSWER_MS;
    while (clock.now() < deadline && !signal.aborted) {
      const { status } = await client.get<KubeObject & NodeStatus>(kind, ref, { signal });
      if (status?.lastUpdated) return status;
      await sleep(clock, ASK_AGAIN_MS, signal);
    }
    throw errors.NODE_SILENT(node, ANSWER_MS / 1_000);
  } finally {
    await client.delete(kind, ref);
  }
}
