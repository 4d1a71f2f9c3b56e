import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  CSI_IDENTITY,
  CSI_NODE,
  GET_PLUGIN_CAPABILITIES,
  GET_PLUGIN_INFO,
  NODE_GET_CAPABILITIES,
  NODE_GET_INFO,
  NODE_PUBLISH_VOLUME,
  NODE_UNPUBLISH_VOLUME,
  PROBE,
} from "../../api/protocol/csi.ts";
import { GRPC_STATUS, GrpcError } from "../../kit/grpc/grpc-frames.ts";
import { type GrpcMethods, unary } from "../../kit/grpc/grpc-server.ts";
import type { Log } from "../../kit/log.ts";
import type { PodSocket } from "./pod-socket.ts";

export interface VolumeDriverOptions {
  driver: string;
  version: string;
  node: string;
  /** The kubelet's own directory: volumes are below it. */
  kubeletDir: string;
  /** Where it is kept which volumes there are: a restarted agent serves them again. */
  recordsDir: string;
  /** Serves the pod of this UID at a socket. */
  openSocket(path: string, uid: string): Promise<PodSocket>;
  log: Log;
}

export interface VolumeDriver {
  methods: GrpcMethods;
  /** Serves again what was published before; what is gone by now is forgotten. */
  restore(): Promise<void>;
  close(): void;
}

interface Volume {
  path: string;
  uid: string;
}

const SOCKET = "socket";
const VOLUME_ID = /^[\w.-]{1,128}$/;
/** Written by the kubelet: the pod's UID, and the volume's name, which is a DNS label. */
const BELOW_KUBELET = /^\/pods\/([0-9a-f-]{32,36})\/volumes\/kubernetes\.io~csi\/[a-z0-9][a-z0-9-]*\/mount$/;

/**
 * A driver of volumes that hold nothing but the pod's own socket. Whose volume it is, the path says: the kubelet made it, and the pod has written
 * nothing in it. Nothing is mounted: the volume is a directory where the kubelet wants one, so the agent needs no right to mount.
 */
export function volumeDriver(options: VolumeDriverOptions): VolumeDriver {
  const { driver, version, node, recordsDir, openSocket, log } = options;
  const open = new Map<string, { volume: Volume; socket: PodSocket }>();
  const recordOf = (id: string) => join(recordsDir, `${id}.json`);
  const serve = async (id: string, volume: Volume) => {
    if (open.has(id)) return;
    // What a link leads to is no volume of the kubelet's.
    if (!lstatSync(volume.path).isDirectory()) throw refused(`${volume.path} is no directory`);
    const socket = await openSocket(join(volume.path, SOCKET), volume.uid);
    open.set(id, { volume, socket });
  };
  const forget = (id: string, path: string) => {
    open.get(id)?.socket.close();
    open.delete(id);
    rmSync(path, { recursive: true, force: true });
    rmSync(recordOf(id), { force: true });
  };
  return {
    methods: {
      [`${CSI_IDENTITY}/GetPluginInfo`]: unary(...GET_PLUGIN_INFO, () => ({ name: driver, vendor_version: version })),
      [`${CSI_IDENTITY}/GetPluginCapabilities`]: unary(...GET_PLUGIN_CAPABILITIES, () => ({})),
      [`${CSI_IDENTITY}/Probe`]: unary(...PROBE, () => ({ ready: { value: true } })),
      [`${CSI_NODE}/NodeGetInfo`]: unary(...NODE_GET_INFO, () => ({ node_id: node })),
      [`${CSI_NODE}/NodeGetCapabilities`]: unary(...NODE_GET_CAPABILITIES, () => ({})),
      [`${CSI_NODE}/NodePublishVolume`]: unary(...NODE_PUBLISH_VOLUME, async (asked) => {
        const volume = volumeAt(options, asked.volume_id, asked.target_path);
        // A pod that could write there could fill the node's disk.
        if (!asked.readonly) throw refused(`the volume must be read-only: set csi.readOnly: true`);
        const before = open.get(asked.volume_id)?.volume;
        if (before && before.path !== volume.path) throw refused(`volume ${asked.volume_id} is at ${before.path}`);
        mkdirSync(recordsDir, { recursive: true, mode: 0o700 });
        const record = recordOf(asked.volume_id);
        writeFileSync(`${record}.new`, JSON.stringify({ path: volume.path }));
        renameSync(`${record}.new`, record);
        mkdirSync(volume.path, { recursive: true, mode: 0o755 });
        await serve(asked.volume_id, volume);
        return {};
      }),
      [`${CSI_NODE}/NodeUnpublishVolume`]: unary(...NODE_UNPUBLISH_VOLUME, (asked) => {
        forget(asked.volume_id, volumeAt(options, asked.volume_id, asked.target_path).path);
        return {};
      }),
    },
    async restore() {
      for (const { id, volume } of recorded(options)) {
        const isThere = lstatSync(volume.path, { throwIfNoEntry: false })?.isDirectory();
        if (!isThere) rmSync(recordOf(id), { force: true });
        // One that cannot be served keeps no other pod from its policy.
        else
          await serve(id, volume).catch((error: unknown) => log.error({ error, ...volume }, "a sidecar is not served"));
      }
    },
    close() {
      for (const { socket } of open.values()) socket.close();
      open.clear();
    },
  };
}

/** What is asked of a place that is no volume of the kubelet's is refused: the caller could have us write anywhere. */
function volumeAt({ kubeletDir }: VolumeDriverOptions, id: string, path: string): Volume {
  if (!VOLUME_ID.test(id)) throw refused("the volume's id is not one of a kubelet");
  const [, uid] = path.startsWith(kubeletDir) ? (BELOW_KUBELET.exec(path.slice(kubeletDir.length)) ?? []) : [];
  if (uid === undefined) throw refused(`${path} is no volume of a pod below ${kubeletDir}`);
  return { path, uid };
}

function refused(message: string): GrpcError {
  return new GrpcError(GRPC_STATUS.invalidArgument, message);
}

/** Whose volume it is, its path says here, too. */
function recorded(options: VolumeDriverOptions): { id: string; volume: Volume }[] {
  const { recordsDir } = options;
  if (!statSync(recordsDir, { throwIfNoEntry: false })) return [];
  const files = readdirSync(recordsDir).filter((file) => file.endsWith(".json"));
  return files.flatMap((file) => {
    try {
      const { path } = JSON.parse(readFileSync(join(recordsDir, file), "utf8")) as Volume;
      const id = file.slice(0, -".json".length);
      return [{ id, volume: volumeAt(options, id, path) }];
    } catch {
      // Cut off by a full disk: the volume is served when its pod is started again.
      return [];
    }
  });
}
