/** What the fake kernel remembers: everything in one place, so that a test can look, and so that two ports see the same. */

import type { ConntrackEntry } from "../conntrack/conntrack-port.ts";
import type { OpenSocket } from "../conntrack/sockets-port.ts";
import { kernelError } from "../errors.ts";
import type {
  ForwardingEntry,
  InterfaceAddress,
  Link,
  Neighbour,
  NetlinkEvent,
  Route,
  RoutingRule,
  TrafficFilter,
} from "../netlink/netlink-port.ts";
import type { MountedFileSystem } from "../netns/mounts-port.ts";
import type { FakeNftTable } from "./fake-nft-state.ts";

export interface FakeNamespace {
  readonly name: string;
  readonly links: Map<number, Link>;
  nextIndex: number;
  addresses: InterfaceAddress[];
  routes: Route[];
  rules: RoutingRule[];
  neighbours: Neighbour[];
  forwarding: ForwardingEntry[];
  readonly clsact: Set<number>;
  filters: TrafficFilter[];
  readonly watchers: Set<(event: NetlinkEvent) => void>;
  conntrack: ConntrackEntry[];
  sockets: OpenSocket[];
  nft: Map<string, FakeNftTable>;
  /** Every transaction that was accepted, as it was given. */
  readonly nftCommands: string[];
}

/** An object with references from descriptors, pins or other objects; it is freed with the last one. */
export interface FakeObject {
  readonly kind: "map" | "program" | "link" | "btf";
  readonly id: number;
  holders: number;
  /** Called once, when the last holder is gone. */
  gone(): void;
}

export class FakeState {
  readonly namespaces = new Map<string, FakeNamespace>();
  readonly home: FakeNamespace = emptyNamespace("");
  /** The one the calling thread is in. */
  here: FakeNamespace = this.home;
  readonly open = new Map<number, FakeObject | FakeNamespace>();
  readonly objects = new Map<number, FakeObject>();
  readonly pins = new Map<string, FakeObject>();
  readonly pinDirectories = new Set<string>(["/sys/fs/bpf"]);
  readonly mounts: MountedFileSystem[] = [
    { path: "/sys/fs/bpf", type: "bpf", root: "/", propagates: true },
    { path: "/sys/fs/cgroup", type: "cgroup2", root: "/", propagates: true },
  ];
  readonly cgroups = new Map<string, Set<number>>([["/sys/fs/cgroup", new Set()]]);
  private readonly numbers = new WeakMap<object, bigint>();

  /** The number the kernel knows a group or a namespace by; another one made in its place has another. */
  numberOf(thing: object): bigint {
    const number = this.numbers.get(thing) ?? BigInt(this.newId());
    this.numbers.set(thing, number);
    return number;
  }
  private nextFd = 100;
  private nextId = 1;

  newId(): number {
    return this.nextId++;
  }

  /** Gives a descriptor for something, which holds it until it is closed. */
  openFd(what: FakeObject | FakeNamespace): number {
    const fd = this.nextFd++;
    this.open.set(fd, what);
    if (isObject(what)) this.hold(what);
    return fd;
  }

  closeFd(fd: number): void {
    const what = this.open.get(fd);
    if (!what) throw kernelError(`closing ${fd}`, "EBADF");
    this.open.delete(fd);
    if (isObject(what)) this.release(what);
  }

  objectAt(fd: number, kind: FakeObject["kind"]): FakeObject {
    const what = this.open.get(fd);
    if (!what || !isObject(what)) throw kernelError(`descriptor ${fd}`, "EBADF");
    if (what.kind !== kind) throw kernelError(`descriptor ${fd}`, "EINVAL", `it is a ${what.kind}`);
    return what;
  }

  hold(object: FakeObject): void {
    object.holders++;
    this.objects.set(object.id, object);
  }

  release(object: FakeObject): void {
    object.holders--;
    if (object.holders > 0) return;
    this.objects.delete(object.id);
    object.gone();
  }

  namespaceOf(netns: { readonly fd: number } | undefined): FakeNamespace {
    if (!netns) return this.here;
    const found = this.open.get(netns.fd);
    if (!found || isObject(found)) throw kernelError("network namespace", "EBADF");
    return found;
  }
}

function isObject(what: FakeObject | FakeNamespace): what is FakeObject {
  return "kind" in what;
}

export function emptyNamespace(name: string): FakeNamespace {
  const loopback: Link = {
    index: 1,
    name: "lo",
    kind: undefined,
    mac: "00:00:00:00:00:00",
    mtu: 65536,
    up: false,
    peer: undefined,
    master: undefined,
    vxlan: undefined,
  };
  return {
    name,
    links: new Map([[1, loopback]]),
    nextIndex: 2,
    addresses: [],
    routes: [],
    rules: ([4, 6] as const).flatMap((family) => [
      { family, priority: 0, table: 255 },
      { family, priority: 32766, table: 254 },
    ]),
    neighbours: [],
    forwarding: [],
    clsact: new Set(),
    filters: [],
    watchers: new Set(),
    conntrack: [],
    sockets: [],
    nft: new Map(),
    nftCommands: [],
  };
}

/** As the kernel does: notified afterwards, never from inside the call that caused it. */
export function notify(namespace: FakeNamespace, event: NetlinkEvent): void {
  for (const watcher of namespace.watchers) {
    setImmediate(() => {
      if (namespace.watchers.has(watcher)) watcher(event);
    });
  }
}
