import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Pod } from "../../controllers/workload-types.ts";
import { fieldValue, type References } from "../../programs/container-env.ts";
import type { ContainerStart } from "../container-runner.ts";
import { ContainerStartError } from "../node-runtime.ts";
import type { FrameMount } from "./container-script.ts";
import { type CsiVolume, publishVolume } from "./csi-volumes.ts";
import { hostPathFailure } from "./host-path.ts";
import type { Machine } from "./machine.ts";

interface KeyPath {
  key: string;
  path: string;
  mode?: number;
}

/** A file of a volume, before it is written. */
interface VolumeFile {
  content: string | Buffer;
  /** Where it is not the volume's. */
  mode?: number;
}

interface FileSource {
  name?: string;
  secretName?: string;
  items?: KeyPath[];
  optional?: boolean;
  defaultMode?: number;
}

interface Projection {
  configMap?: FileSource;
  secret?: FileSource;
  downwardAPI?: {
    items?: { path: string; mode?: number; fieldRef?: { fieldPath: string } }[];
    defaultMode?: number;
  };
  serviceAccountToken?: { path: string };
}

interface Volume extends Projection {
  name: string;
  hostPath?: { path: string; type?: string };
  emptyDir?: object;
  persistentVolumeClaim?: { claimName: string };
  csi?: CsiVolume["csi"];
  projected?: { sources: Projection[]; defaultMode?: number };
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
      readOnly: readOnly || volume.csi?.readOnly === true,
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
      if (token) writeInto(machine, pod, volume, { [serviceAccountToken.path]: tokenFile(pod, token) });
    }
  }
}

/** Writes the ConfigMaps and Secrets that the pod mounts again, as they are now. One that is gone and not optional stays as it was. */
export async function refreshVolumes(machine: Machine, pod: Pod, sources: VolumeSources): Promise<void> {
  for (const volume of objectVolumes(pod)) {
    const directory = machine.path(volumeDir(pod, volume));
    if (!existsSync(directory)) continue;
    const files = await filesOfObject(volume.name, volume, pod, sources).catch((error: unknown) => {
      if (error instanceof ContainerStartError) return undefined;
      throw error;
    });
    if (files === undefined || !existsSync(directory)) continue;
    writeInto(machine, pod, volume, files);
    const kept = new Set(Object.keys(files).map((path) => path.split("/")[0]));
    for (const name of readdirSync(directory)) if (!kept.has(name)) rmSync(join(directory, name), { recursive: true });
  }
}

export function objectVolumes({ spec }: Pod): Volume[] {
  return ((spec["volumes"] as Volume[] | undefined) ?? []).filter(({ configMap, secret }) => configMap ?? secret);
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
  if (volume.persistentVolumeClaim) {
    const { claimName } = volume.persistentVolumeClaim;
    const path = await sources.references.volume(start.pod.metadata.namespace ?? "", claimName);
    if (path === undefined) throw failure(volume.name, `persistentvolumeclaim "${claimName}" is not bound`);
    mkdirSync(machine.path(path), { recursive: true });
    chmodSync(machine.path(path), OPEN_DIRECTORY);
    return path;
  }
  if (volume.csi) {
    return publishVolume(machine, start.pod, { name: volume.name, csi: volume.csi }).catch((error: Error) => {
      throw failure(volume.name, error.message);
    });
  }
  const directory = volumeDir(start.pod, volume);
  mkdirSync(machine.path(directory), { recursive: true });
  giveToGroup(machine.path(directory), volume.emptyDir ? OPEN_DIRECTORY : DIRECTORY, fsGroupOf(start.pod));
  if (volume.emptyDir) return directory;
  for (const projection of volume.projected?.sources ?? [volume])
    writeInto(machine, start.pod, volume, await filesOf(volume.name, projection, start, sources));
  return directory;
}

const OPEN_DIRECTORY = 0o777;
const DIRECTORY = 0o755;
const FILE = 0o644;
const OWNERS_FILE = 0o600;
const GROUP_READS = 0o440;
const SET_GROUP = 0o2000;

/** The group to which the pod's volumes belong. */
function fsGroupOf({ spec }: Pod): number | undefined {
  return (spec["securityContext"] as { fsGroup?: number } | undefined)?.fsGroup;
}

/** What is made in a directory of a group is the group's, too. */
function giveToGroup(directory: string, mode: number, group: number | undefined): void {
  if (group !== undefined) chownSync(directory, 0, group);
  chmodSync(directory, group === undefined ? mode : mode | SET_GROUP);
}

/** A token is its pod's alone, where the pod's group says who that is. */
function tokenFile(pod: Pod, token: string): VolumeFile {
  return fsGroupOf(pod) === undefined ? { content: token } : { content: token, mode: OWNERS_FILE };
}

function writeInto(machine: Machine, pod: Pod, volume: Volume, files: Readonly<Record<string, VolumeFile>>): void {
  const { projected, secret, configMap, downwardAPI } = volume;
  const usual = (projected ?? secret ?? configMap ?? downwardAPI)?.defaultMode ?? FILE;
  const group = fsGroupOf(pod);
  for (const [path, { content, mode = usual }] of Object.entries(files))
    write(machine, join(volumeDir(pod, volume), path), content, group === undefined ? mode : mode | GROUP_READS, group);
}

function hostPath(machine: Machine, name: string, { path, type = "" }: NonNullable<Volume["hostPath"]>): string {
  const why = hostPathFailure(machine.path(path), path, type);
  if (why !== undefined) throw failure(name, why);
  return path;
}

async function filesOf(
  volume: string,
  projection: Projection,
  start: Parameters<typeof mountsOf>[1],
  sources: VolumeSources,
): Promise<Record<string, VolumeFile>> {
  const { downwardAPI, serviceAccountToken } = projection;
  const files = await filesOfObject(volume, projection, start.pod, sources);
  if (files) return files;
  if (serviceAccountToken) {
    const token = await sources.token(start.pod);
    if (!token) throw failure(volume, "failed to fetch token: the service account is gone");
    return { [serviceAccountToken.path]: tokenFile(start.pod, token) };
  }
  if (!downwardAPI) throw failure(volume, "nodes here know no volumes of this kind");
  const items = (downwardAPI.items ?? []).filter(({ fieldRef }) => fieldRef);
  return Object.fromEntries(
    items.map(({ path, mode, fieldRef }) => [
      path,
      { content: fieldValue(fieldRef?.fieldPath ?? "", start), ...(mode !== undefined && { mode }) },
    ]),
  );
}

/** Undefined for a volume that is neither a ConfigMap nor a Secret. */
async function filesOfObject(
  volume: string,
  { configMap, secret }: Projection,
  { metadata: { namespace = "" } }: Pod,
  { references }: VolumeSources,
): Promise<Record<string, VolumeFile> | undefined> {
  if (configMap) {
    const object = await references.configMap(namespace, configMap.name ?? "");
    return chosen(volume, `configmap "${configMap.name}"`, configMap, object?.data);
  }
  if (!secret) return undefined;
  const name = secret.secretName ?? secret.name ?? "";
  const object = await references.secret(namespace, name);
  const entries = Object.entries(object?.data ?? {}).map(([key, text]) => [key, Buffer.from(text, "base64")]);
  return chosen(volume, `secret "${name}"`, secret, object && (Object.fromEntries(entries) as Record<string, Buffer>));
}

function chosen(
  volume: string,
  what: string,
  { items, optional }: FileSource,
  data: Record<string, string | Buffer> | undefined,
): Record<string, VolumeFile> {
  if (data === undefined) {
    if (optional) return {};
    throw failure(volume, `${what} not found`);
  }
  if (!items) return Object.fromEntries(Object.entries(data).map(([key, content]) => [key, { content }]));
  return Object.fromEntries(
    items.flatMap(({ key, path, mode }) => {
      const content = data[key];
      if (content !== undefined) return [[path, { content, ...(mode !== undefined && { mode }) }]];
      if (optional) return [];
      throw failure(volume, `references non-existent key ${key} in ${what}`);
    }),
  );
}

/** A reader sees the old file or the new one. */
function write(
  machine: Machine,
  path: string,
  content: string | Buffer,
  mode: number,
  group: number | undefined,
): void {
  const there = machine.path(path);
  mkdirSync(dirname(there), { recursive: true });
  writeFileSync(`${there}.new`, content, { mode: OWNERS_FILE });
  if (group !== undefined) chownSync(`${there}.new`, 0, group);
  chmodSync(`${there}.new`, mode);
  renameSync(`${there}.new`, there);
}

function failure(volume: string, why: string): ContainerStartError {
  return new ContainerStartError("volume", `MountVolume.SetUp failed for volume "${volume}" : ${why}`);
}

export function volumesDirectory(uid: string): string {
  return `/var/lib/kubelet/pods/${uid}`;
}
