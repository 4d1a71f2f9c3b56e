import { describe, expect, it } from "vitest";
import type { MountedFileSystem } from "../kernel/netns/mounts-port.ts";
import { watchBpfFileSystem } from "./bpf-file-system.ts";

const PATH = "/sys/fs/bpf";
const mount = (type: string, propagates: boolean): MountedFileSystem => ({ path: PATH, root: "/", type, propagates });

describe("the BPF file system of a node", () => {
  const watched = (...first: MountedFileSystem[]) => {
    const now = { mounted: first };
    const look = watchBpfFileSystem({ mounted: () => now.mounted }, PATH);
    return { now, code: () => look()?.error.code };
  };

  it("was unmounted on the node: the container's own mount of it is left", () => {
    const { now, code } = watched(mount("bpf", true));
    expect(code()).toBeUndefined();
    now.mounted = [mount("bpf", false)];
    expect(code()).toBe("BPF_FILE_SYSTEM_UNMOUNTED");
    now.mounted = [];
    expect(code()).toBe("BPF_FILE_SYSTEM_UNMOUNTED");
  });

  it("was unmounted before a container restarted, which then mounted one for itself", () => {
    expect(watched(mount("sysfs", true), mount("bpf", false)).code()).toBe("BPF_FILE_SYSTEM_UNMOUNTED");
  });

  it("is the node's own in a process that is in no container, whether or not it is shared", () => {
    expect(watched(mount("bpf", false)).code()).toBeUndefined();
    expect(watched(mount("bpf", true)).code()).toBeUndefined();
  });
});
