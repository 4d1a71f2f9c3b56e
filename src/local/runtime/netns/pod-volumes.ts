import { mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Pod } from "../../controllers/workload-types.ts";
import { fieldValue, type References } from "../../programs/container-env.ts";
import type { ContainerStart } from "../container-runner.ts";
import { ContainerStartError } from "../node-runtime.ts";
import type { FrameMount } from "./container-script.ts";
import { hostPathFailure } from "./host-path.ts";
import type { Machine } from "./machine.ts";

interface KeyPath {
  key: string;
  path: string;
}

interface FileSource {
  name?: string;
  secretName?: string;
  items?: KeyPath[];
  optional?: boolean;
}

interface Projection {
  configMap?: FileSource;
  secret?: FileSource;
  downwardAPI?: { items?: { path: string; fieldRef?: { fieldPath: string } }[] };
  serviceAccountToken?: { path: string };
}

interface Volume extends Projection {
  name: string;
  hostPath?: { path: string; type?: string };
  emptyDir?: object;
  projected?: { sources: Projection[] };
}

interface VolumeMount {
  name: string;
  mountPath: string;
  subPath?: string;
  readOnly?: boolean;
  mountPropagation?: FrameMount["propagation"];
}

export interface VolumeSources {
  references: References;
  /** A fresh token of the pod's service account; undefined when the account is gone. */
  token(pod: Pod): Promise<string | undefined>;
}

/** Prepares on the node what the container mounts. What is not there yet throws a `ContainerStartError`: a kubelet waits for it. */
export async function mountsOf(
  machine: Machine,
  start: Pick<ContainerStart, "pod" | "container" | "node" | "hostIPs" | "podIPs">,
  sources: VolumeSources,
): Promise<FrameMount[]> {
  const wanted = (start.container["volumeMounts"] as VolumeMount[] | undefined) ?? [];
  const volumes = (start.pod.spec["volumes"] as Volume[] | undefined) ?? [];
  const mounts: FrameMount[] = [];
  for (const { name, mountPath, subPath = "", readOnly = false, mountPropagation = "None" } of wanted) {
    const volume = volumes.find((one) => one.name === name);
    if (!volume) throw failure(name, "no such volume");
    const from = join(await onNode(machine, volume, start, sources), subPath);
    mounts.push({
      from,
      to: mountPath,
      isDirectory: statSync(machine.path(from)).isDirectory(),
      readOnly,
      propagation: mountPropagation,
    });
  }
  return mounts;
}

/** Writes the pod's token again wherever it is mounted: it is worth an hour. */
export async function renewTokens(machine: Machine, pod: Pod, sources: VolumeSources): Promise<void> {
  for (const volume of (pod.spec["volumes"] as Volume[] | undefined) ?? []) {
    for (const { serviceAccountToken } of volume.projected?.sources ?? []) {
      const token = serviceAccountToken && (await sources.token(pod));
      if (token) write(machine, join(volumeDir(pod, volume), serviceAccountToken.path), token);
    }
  }
}

function volumeDir(pod: Pod, { name }: Volume): string {
  return `/var/lib/kubelet/pods/${pod.metadata.uid}/volumes/${name}`;
}

/** The volume's path on the node. */
async function onNode(
  machine: Machine,
  volume: Volume,
  start: Parameters<typeof mountsOf>[1],
  sources: VolumeSources,
): Promise<string> {
  if (volume.hostPath) return hostPath(machine, volume.name, volume.hostPath);
  const directory = volumeDir(start.pod, volume);
  mkdirSync(machine.path(directory), { recursive: true });
  if (volume.emptyDir) return directory;
  for (const projection of volume.projected?.sources ?? [volume]) {
    const files = await filesOf(volume.name, projection, start, sources);
    for (const [path, text] of Object.entries(files)) write(machine, join(directory, path), text);
  }
  return directory;
}

function hostPath(machine: Machine, name: string, { path, type = "" }: NonNullable<Volume["hostPath"]>): string {
  const why = hostPathFailure(machine.path(path), path, type);
  if (why !== undefined) throw failure(name, why);
  return path;
}

async function filesOf(
  volume: string,
  { configMap, secret, downwardAPI, serviceAccountToken }: Projection,
  start: Parameters<typeof mountsOf>[1],
  sources: VolumeSources,
): Promise<Record<string, string | Buffer>> {
  const namespace = start.pod.metadata.namespace ?? "";
  if (configMap) {
    const object = await sources.references.configMap(namespace, configMap.name ?? "");
    return chosen(volume, `configmap "${configMap.name}"`, configMap, object?.data);
  }
  if (secret) {
    const name = secret.secretName ?? secret.name ?? "";
    const object = await sources.references.secret(namespace, name);
    const entries = Object.entries(object?.data ?? {}).map(([key, text]) => [key, Buffer.from(text, "base64")]);
    return chosen(
      volume,
      `secret "${name}"`,
      secret,
      object && (Object.fromEntries(entries) as Record<string, Buffer>),
    );
  }
  if (serviceAccountToken) {
    const token = await sources.token(start.pod);
    if (!token) throw failure(volume, "failed to fetch token: the service account is gone");
    return { [serviceAccountToken.path]: token };
  }
  if (!downwardAPI) throw failure(volume, "nodes here know no volumes of this kind");
  const items = (downwardAPI.items ?? []).filter(({ fieldRef }) => fieldRef);
  return Object.fromEntries(items.map(({ path, fieldRef }) => [path, fieldValue(fieldRef?.fieldPath ?? "", start)]));
}

function chosen<T>(
  volume: string,
  what: string,
  { items, optional }: FileSource,
  data: Record<string, T> | undefined,
): Record<string, T> {
  if (data === undefined) {
    if (optional) return {};
    throw failure(volume, `${what} not found`);
  }
  if (!items) return data;
  return Object.fromEntries(
    items.flatMap(({ key, path }) => {
      const value = data[key];
      if (value !== undefined) return [[path, value]];
      if (optional) return [];
      throw failure(volume, `references non-existent key ${key} in ${what}`);
    }),
  );
}

/** A reader sees the old file or the new one. */
function write(machine: Machine, path: string, content: string | Buffer): void {
  const there = machine.path(path);
  mkdirSync(dirname(there), { recursive: true });
  writeFileSync(`${there}.new`, content, { mode: 0o644 });
  renameSync(`${there}.new`, there);
}

function failure(volume: string, why: string): ContainerStartError {
  return new ContainerStartError("volume", `MountVolume.SetUp failed for volume "${volume}" : ${why}`);
}

export function volumesDirectory(uid: string): string {
  return `/var/lib/kubelet/pods/${uid}`;
}
