import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { errors, kernelError } from "../errors.ts";
import { AF_INET, addressBytes } from "../netlink/netlink-message.ts";
import {
  bind,
  close,
  enterNetwork,
  type Fd,
  getsockopt,
  leaveNetwork,
  mount,
  setsockopt,
  socket,
  startThreadPool,
  unmount,
} from "../sys.ts";
import type { BoundSocket, Netns, NetnsPort } from "./netns-port.ts";

/** Where `ip netns` keeps names too. */
const NAMES = "/run/netns";
/** Of this thread: the process's own entry would be the main thread's. */
const SELF = "/proc/thread-self/ns/net";
const MOUNT = { bind: 0x1000, recursive: 0x4000, shared: 0x100000 } as const;

export function realNetns(): NetnsPort {
  return {
    create,
    open: (name) => openAt(`${NAMES}/${checked(name)}`, name),
    openPath: (path) => openAt(path, path),
    delete: remove,
    names: () => (existsSync(NAMES) ? readdirSync(NAMES).sort() : []),
    run: (netns, act) => inside(netns.fd, act),
    cookie: (netns) => (netns ? inside(netns.fd, cookieHere) : cookieHere()),
    enter: (netns) => enterNetwork(netns.fd),
    bind: (netns, wanted) => inside(netns.fd, () => boundSocket(wanted)),
  };
}

/** Enters, acts, returns. A thread that cannot return must not continue: everything after would happen in the wrong namespace. */
export function inside<T>(fd: Fd, act: () => T): T {
  startThreadPool();
  const home = openSync(SELF, "r");
  try {
    enterNetwork(fd);
    try {
      return act();
    } finally {
      comeHome(home);
    }
  } finally {
    closeSync(home);
  }
}

function comeHome(home: Fd): void {
  try {
    enterNetwork(home);
  } catch (error) {
    process.stderr.write(`cannot leave a network namespace: ${error}\n`);
    process.abort();
  }
}

function create(name: string): Netns {
  const path = `${NAMES}/${checked(name)}`;
  prepareNames();
  if (existsSync(path)) throw kernelError(`network namespace ${name}`, "EEXIST");
  writeFileSync(path, "", { mode: 0o444 });
  startThreadPool();
  const home = openSync(SELF, "r");
  try {
    leaveNetwork();
    try {
      mount(SELF, path, "none", MOUNT.bind);
    } finally {
      comeHome(home);
    }
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(home);
  }
  return openAt(path, name);
}

/** Shared, so that a name made here is seen in other mount namespaces, and taking it away there frees the namespace. */
function prepareNames(): void {
  mkdirSync(NAMES, { recursive: true, mode: 0o755 });
  try {
    mount("", NAMES, "none", MOUNT.shared | MOUNT.recursive);
  } catch {
    // It is not a mount of its own yet; what is not one cannot be shared.
    mount(NAMES, NAMES, "none", MOUNT.bind | MOUNT.recursive);
    mount("", NAMES, "none", MOUNT.shared | MOUNT.recursive);
  }
}

function openAt(path: string, name: string): Netns {
  let fd: Fd;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    throw kernelError(`network namespace ${name}`, (error as NodeJS.ErrnoException).code ?? "EIO");
  }
  return { name, fd, close: () => close(fd) };
}

function remove(name: string): boolean {
  const path = `${NAMES}/${checked(name)}`;
  if (!existsSync(path)) return false;
  try {
    unmount(path);
  } catch {
    // A crash between making the file and mounting leaves a name without a namespace.
  }
  rmSync(path, { force: true });
  return true;
}

function checked(name: string): string {
  if (!/^[\w.-]{1,200}$/.test(name) || name.startsWith(".")) {
    throw errors.KERNEL_BAD_VALUE("a name for a network namespace", name);
  }
  return name;
}

function cookieHere(): bigint | undefined {
  const [SOCK_DGRAM, SOL_SOCKET, SO_NETNS_COOKIE] = [2, 1, 71];
  const fd = socket(AF_INET, SOCK_DGRAM, 0);
  try {
    const cookie = Buffer.alloc(8);
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie) === cookie.length ? cookie.readBigUInt64LE() : undefined;
  } finally {
    close(fd);
  }
}

function boundSocket({ kind, address, port }: BoundSocket): Fd {
  const [SOCK_STREAM, SOCK_DGRAM, SOL_SOCKET, SO_REUSEADDR] = [1, 2, 1, 2];
  const { family, bytes } = addressBytes(address);
  const fd = socket(family, kind === "stream" ? SOCK_STREAM : SOCK_DGRAM, 0);
  try {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    const where = Buffer.alloc(family === AF_INET ? 16 : 28);
    where.writeUInt16LE(family, 0);
    where.writeUInt16BE(port, 2);
    where.set(bytes, family === AF_INET ? 4 : 8);
    bind(fd, where);
    return fd;
  } catch (error) {
    close(fd);
    throw error;
  }
}
