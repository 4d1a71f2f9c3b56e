import { realCgroup } from "../bpf/cgroup.ts";
import { probeFeatures } from "../bpf/features.ts";
import { loadObject } from "../bpf/object.ts";
import { kernelError } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import type { MountsPort } from "../netns/mounts-port.ts";
import type { Netns, NetnsPort } from "../netns/netns-port.ts";
import { type FakeBpfOptions, fakeBpf } from "./fake-bpf.ts";
import { fakeConntrack, fakeSockets } from "./fake-conntrack.ts";
import { fakeFrames } from "./fake-frames.ts";
import { fakeNetlink } from "./fake-netlink.ts";
import { fakeNft } from "./fake-nft.ts";
import { emptyNamespace, FakeState } from "./fake-state.ts";

/** A kernel in memory, for tests of what is above. `world` is what it remembers, for a look behind the ports. */
export interface FakeKernel extends Kernel {
  readonly world: FakeState;
}

export function fakeKernel(options: FakeBpfOptions = {}): FakeKernel {
  const world = new FakeState();
  const bpf = fakeBpf(world, options);
  const mounts: MountsPort = {
    mounted: () => [...world.mounts],
    ensure: (type, path) => {
      if (world.mounts.findLast((found) => found.path === path)?.type === type) return false;
      world.mounts.push({ path, type, root: "/", propagates: false });
      if (type === "bpf") world.pinDirectories.add(path);
      else world.cgroups.set(path, new Set());
      return true;
    },
    unmount: (path) => {
      const at = world.mounts.findLastIndex((found) => found.path === path);
      if (at >= 0) world.mounts.splice(at, 1);
      return at >= 0;
    },
  };
  return {
    world,
    bpf,
    netns: fakeNetns(world),
    mounts,
    cgroup: {
      root: () => world.mounts.find(({ type }) => type === "cgroup2")?.path,
      create: (path) => void world.cgroups.set(path, world.cgroups.get(path) ?? new Set()),
      id: (path) => {
        const group = world.cgroups.get(path);
        if (!group) throw kernelError(`cgroup ${path}`, "ENOENT");
        return world.numberOf(group);
      },
      remove: (path) => {
        if ((world.cgroups.get(path)?.size ?? 0) > 0) throw kernelError(`removing cgroup ${path}`, "EBUSY");
        return world.cgroups.delete(path);
      },
      move: (path, process) => {
        const group = world.cgroups.get(path);
        if (!group) throw kernelError(`moving ${process} to ${path}`, "ENOENT");
        for (const other of world.cgroups.values()) other.delete(process);
        group.add(process);
      },
      // Only asks the port it is given: there is nothing to imitate.
      attach: realCgroup(mounts, bpf).attach,
    },
    netlink: (netns) => fakeNetlink(world, world.namespaceOf(netns)),
    nft: (netns) => fakeNft(world.namespaceOf(netns)),
    conntrack: (netns) => fakeConntrack(world.namespaceOf(netns)),
    sockets: (netns) => fakeSockets(world.namespaceOf(netns)),
    frames: (netns) => fakeFrames(world, world.namespaceOf(netns)),
    loadObject: (bytes, loadOptions) => loadObject(bpf, bytes, loadOptions),
    features: () => probeFeatures(bpf),
  };
}

function fakeNetns(world: FakeState): NetnsPort {
  const open = (name: string): Netns => {
    const namespace = world.namespaces.get(name);
    if (!namespace) throw kernelError(`network namespace ${name}`, "ENOENT");
    const fd = world.openFd(namespace);
    return { name, fd, close: () => world.closeFd(fd) };
  };
  let sockets = 10_000;
  return {
    create: (name) => {
      if (world.namespaces.has(name)) throw kernelError(`network namespace ${name}`, "EEXIST");
      world.namespaces.set(name, emptyNamespace(name));
      return open(name);
    },
    open,
    openPath: (path) => open(path.replace(/^\/(?:var\/)?run\/netns\//, "")),
    delete: (name) => world.namespaces.delete(name),
    names: () => [...world.namespaces.keys()].sort(),
    run: (netns, act) => {
      const before = world.here;
      world.here = world.namespaceOf(netns);
      try {
        return act();
      } finally {
        world.here = before;
      }
    },
    cookie: (netns) => world.numberOf(netns ? world.namespaceOf(netns) : world.here),
    enter: (netns) => {
      world.here = world.namespaceOf(netns);
    },
    bind: (netns) => {
      world.namespaceOf(netns);
      return sockets++;
    },
  };
}
