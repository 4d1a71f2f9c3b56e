import type { Fd } from "../sys.ts";

/** A network namespace held open. It lives as long as a descriptor is open, a process is in it, or it has a name. */
export interface Netns {
  readonly name: string;
  readonly fd: Fd;
  close(): void;
}

export interface BoundSocket {
  readonly kind: "stream" | "datagram";
  readonly address: string;
  readonly port: number;
}

export interface NetnsPort {
  /** Makes a namespace with a name, as `ip netns add` does; its loopback is down. */
  create(name: string): Netns;
  open(name: string): Netns;
  /** By a path such as `/proc/PID/ns/net` or what a container runtime gives. */
  openPath(path: string): Netns;
  /** Takes the name away; whether there was one. */
  delete(name: string): boolean;
  names(): string[];
  /**
   * Runs something inside. It must be synchronous to its end: a callback, a promise or a thread started inside would go on outside, or
   * worse, stay. Sockets opened inside stay there for life.
   */
  run<T>(netns: Netns, act: () => NotAPromise<T>): T;
  /** The kernel's cookie of a namespace, or of the one this thread is in, as programs see it; undefined on kernels without it (before 5.14). */
  cookie(netns?: Netns): bigint | undefined;
  /** Moves this thread for good. Only for a Worker or a process that has done nothing else yet. */
  enter(netns: Netns): void;
  /** A socket inside, bound: for `server.listen({ fd })`. `net.connect` inside `run` does not do: Node connects later, outside. */
  bind(netns: Netns, socket: BoundSocket): Fd;
}

type NotAPromise<T> = T extends PromiseLike<unknown> ? never : T;
