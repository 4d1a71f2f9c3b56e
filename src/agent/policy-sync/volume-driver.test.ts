import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CSI_NODE, NODE_PUBLISH_VOLUME, NODE_UNPUBLISH_VOLUME } from "../../api/protocol/csi.ts";
import { grpcClient } from "../../kit/grpc/grpc-client.ts";
import { grpcServer } from "../../kit/grpc/grpc-server.ts";
import { silentLog } from "../../kit/log.ts";
import { listenAtSocket } from "../../kit/unix-socket.ts";
import { volumeDriver } from "./volume-driver.ts";

const UID = "0b7e9a52-8d3f-4f0e-9b1a-2c4d6e8f0a1b";

describe("volumes of sidecars", () => {
  let root = "";
  let opened: string[] = [];
  let closed: string[] = [];
  const ends: (() => void)[] = [];
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "kubelet-"));
    [opened, closed] = [[], []];
  });
  afterEach(() => {
    for (const end of ends.splice(0).reverse()) end();
    rmSync(root, { recursive: true });
  });

  const driver = (fail: (path: string) => void = () => undefined) =>
    volumeDriver({
      ...{
        driver: "csi.example.com",
        version: "v1",
        node: "node-a",
        kubeletDir: root,
        recordsDir: join(root, "records"),
      },
      log: silentLog,
      openSocket: async (path, uid) => {
        fail(path);
        opened.push(`${uid} ${path}`);
        return { close: () => void closed.push(path) };
      },
    });
  const calls = async (made = driver()) => {
    const { server, close } = grpcServer(made.methods);
    await listenAtSocket(server, join(root, "csi.sock"), 0o600);
    const client = grpcClient(join(root, "csi.sock"));
    ends.push(close, () => client.close());
    const id = "csi-1";
    return {
      publish: (target_path: string, more: { volume_id?: string; readonly?: boolean } = {}) =>
        client.call(
          `${CSI_NODE}/NodePublishVolume`,
          NODE_PUBLISH_VOLUME,
          { volume_id: id, target_path, readonly: true, ...more },
          5_000,
        ),
      unpublish: (target_path: string) =>
        client.call(`${CSI_NODE}/NodeUnpublishVolume`, NODE_UNPUBLISH_VOLUME, { volume_id: id, target_path }, 5_000),
    };
  };
  const pathOf = (uid: string, name = "vendor-nodeagent") =>
    join(root, "pods", uid, "volumes/kubernetes.io~csi", name, "mount");

  it("a volume is a directory with a socket for the pod whose UID the kubelet's path has", async () => {
    const { publish, unpublish } = await calls();
    const path = pathOf(UID);
    await publish(path);
    await publish(path);
    expect(opened).toEqual([`${UID} ${path}/socket`]);
    expect(statSync(path).mode & 0o777).toBe(0o755);
    await unpublish(path);
    expect(closed).toEqual([`${path}/socket`]);
    expect(existsSync(path)).toBe(false);
    expect(readdirSync(join(root, "records"))).toEqual([]);
    await unpublish(path);
  });

  it("what is no volume of a pod, or could be written by the pod, is refused, and nothing is made", async () => {
    const { publish } = await calls();
    const [outside, dots] = [join(root, "elsewhere"), `${pathOf(UID)}/../../../x/mount`];
    for (const path of [
      outside,
      dots,
      pathOf("../../etc"),
      pathOf(UID, "a/b"),
      pathOf(UID).replace("~csi", "~secret"),
      "",
    ]) {
      await expect(publish(path), path).rejects.toMatchObject({ status: 3 });
    }
    await expect(publish(pathOf(UID), { readonly: false })).rejects.toThrow("csi.readOnly: true");
    await expect(publish(pathOf(UID), { volume_id: "../x" })).rejects.toThrow("id");
    await publish(pathOf(UID));
    await expect(publish(pathOf(UID, "other"))).rejects.toThrow("is at");
    expect(opened).toHaveLength(1);
    expect(existsSync(outside)).toBe(false);
  });

  it("who is served after a restart is said by the path alone: a record of another place, or a link, serves no one", async () => {
    const { publish } = await calls();
    const other = "22222222-8d3f-4f0e-9b1a-2c4d6e8f0a1b";
    await publish(pathOf(UID));
    for (const directory of [
      join(root, "elsewhere"),
      dirname(pathOf(other)),
      join(root, "pods", "not-a-uid", "mount"),
    ]) {
      mkdirSync(directory, { recursive: true });
    }
    symlinkSync(join(root, "elsewhere"), pathOf(other));
    const planted = {
      "csi-1": { path: pathOf(UID), uid: other },
      "csi-2": { path: join(root, "elsewhere"), uid: UID },
      "csi-3": { path: pathOf(other), uid: other },
      "csi-4": { path: join(root, "pods/not-a-uid/mount"), uid: UID },
      "csi-5": { path: 7 },
      "csi-6": null,
    };
    for (const [id, record] of Object.entries(planted)) {
      writeFileSync(join(root, "records", `${id}.json`), JSON.stringify(record));
    }
    opened = [];
    await driver().restore();
    expect(opened).toEqual([`${UID} ${pathOf(UID)}/socket`]);
    await expect(publish(pathOf(other), { volume_id: "csi-7" })).rejects.toThrow("is no directory");
  });

  it("a volume that cannot be served keeps no other from its policy", async () => {
    const { publish } = await calls();
    await publish(pathOf(UID));
    await publish(pathOf("33333333-8d3f-4f0e-9b1a-2c4d6e8f0a1b"), { volume_id: "csi-0" });
    opened = [];
    const broken = driver((path) => {
      if (path.includes("33333333")) throw new Error("no space left on device");
    });
    await broken.restore();
    expect(opened).toEqual([`${UID} ${pathOf(UID)}/socket`]);
  });

  it("an agent that was restarted serves the volumes that are there, and forgets the others", async () => {
    const { publish } = await calls();
    const gone = pathOf("11111111-8d3f-4f0e-9b1a-2c4d6e8f0a1b");
    await publish(pathOf(UID));
    await publish(gone, { volume_id: "csi-2" });
    rmSync(gone, { recursive: true });
    mkdirSync(join(root, "records"), { recursive: true });
    opened = [];
    await driver().restore();
    expect(opened).toEqual([`${UID} ${pathOf(UID)}/socket`]);
    expect(readdirSync(join(root, "records"))).toEqual(["csi-1.json"]);
  });
});
