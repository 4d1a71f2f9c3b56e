export interface MountedFileSystem {
  readonly path: string;
  readonly type: string;
  /** Which directory of the file system is mounted: `/`, unless a part of it was bound. */
  readonly root: string;
  /** It is a peer or a slave of other mounts of the file system: what is mounted in a container is one of the node's mount, as long as that is there. */
  readonly propagates: boolean;
}

export interface MountsPort {
  mounted(): MountedFileSystem[];
  /** Makes the directory, and mounts unless that type is mounted there already; whether it had to. */
  ensure(type: "bpf" | "cgroup2", path: string): boolean;
  /** Whether something was mounted there. */
  unmount(path: string): boolean;
}
