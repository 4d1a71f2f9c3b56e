import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import {
  CSI_NODE,
  NODE_PUBLISH_VOLUME,
  NODE_UNPUBLISH_VOLUME,
  PLUGIN_INFO,
  PLUGIN_REGISTRATION,
} from "../../../api/protocol/csi.ts";
import { type GrpcClient, grpcClient } from "../../../kit/grpc/grpc-client.ts";
import type { Pod } from "../../controllers/workload-types.ts";
import type { Machine } from "./machine.ts";

/** A volume that lives and ends with its pod, of a driver on the node. */
export interface CsiVolume {
  name: string;
  csi: { driver: string; readOnly?: boolean };
}

const REGISTRY = "/var/lib/kubelet/plugins_registry";
const ANSWER_MS = 10_000;

/** The kubelet's half of CSI. Where the volume is on the node; what it throws is why there is none. */
export async function publishVolume(machine: Machine, pod: Pod, volume: CsiVolume): Promise<string> {
  const { driver, readOnly = false } = volume.csi;
  const path = volumePath(pod, volume);
  // The driver makes the volume itself, in a directory of the kubelet's.
  mkdirSync(machine.path(dirname(path)), { recursive: true });
  await withDriver(machine, driver, (client) =>
    client.call(
      `${CSI_NODE}/NodePublishVolume`,
      NODE_PUBLISH_VOLUME,
      { volume_id: volumeId(pod, volume), target_path: path, readonly: readOnly },
      ANSWER_MS,
    ),
  );
  return path;
}

/** A driver that is away forgets the volume by itself: its directory goes with the pod. */
export async function unpublishVolumes(machine: Machine, pod: Pod): Promise<void> {
  const volumes = (pod.spec["volumes"] as (CsiVolume | { csi?: undefined })[] | undefined) ?? [];
  for (const volume of volumes) {
    if (!volume.csi || !isThere(machine, volumePath(pod, volume))) continue;
    const request = { volume_id: volumeId(pod, volume), target_path: volumePath(pod, volume) };
    await withDriver(machine, volume.csi.driver, (client) =>
      client.call(`${CSI_NODE}/NodeUnpublishVolume`, NODE_UNPUBLISH_VOLUME, request, ANSWER_MS),
    ).catch(() => undefined);
  }
}

function volumePath({ metadata }: Pod, { name }: CsiVolume): string {
  return `/var/lib/kubelet/pods/${metadata.uid}/volumes/kubernetes.io~csi/${name}/mount`;
}

function volumeId({ metadata }: Pod, { name }: CsiVolume): string {
  return `csi-${createHash("sha256").update(`${metadata.uid}/${name}`).digest("hex")}`;
}

function isThere(machine: Machine, path: string): boolean {
  return statSync(machine.path(path), { throwIfNoEntry: false }) !== undefined;
}

async function withDriver<T>(machine: Machine, driver: string, use: (client: GrpcClient) => Promise<T>): Promise<T> {
  for (const file of isThere(machine, REGISTRY) ? readdirSync(machine.path(REGISTRY)) : []) {
    const info = await using(machine.path(`${REGISTRY}/${file}`), (client) =>
      client.call(`${PLUGIN_REGISTRATION}/GetInfo`, PLUGIN_INFO, {}, ANSWER_MS),
    ).catch(() => undefined);
    if (info?.name === driver) return await using(machine.path(info.endpoint), use);
  }
  throw new Error(`driver name ${driver} not found in the list of registered CSI drivers`);
}

async function using<T>(socket: string, use: (client: GrpcClient) => Promise<T>): Promise<T> {
  const client = grpcClient(socket);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}
