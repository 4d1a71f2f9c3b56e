/**
 * The one file that calls libc. Everything else in this module uses these functions, and nothing outside this file knows
 * the foreign-function library, which is loaded at the first call: a command that never asks the kernel never pays for it.
 *
 * Functions that can fail in ways a caller decides about return what the kernel returned, or minus errno; the others throw.
 */
import { closeSync, stat } from "node:fs";
import { createRequire } from "node:module";
import { constants, endianness } from "node:os";
import type koffi from "koffi";
import { errors, kernelError } from "./errors.ts";

export type Fd = number;

type Koffi = typeof koffi;

/** What a library called off the event loop has to stand on. With the 128 KiB it would get, nftables writes past the end and takes us with it. */
const ASYNC_STACK = 2 * 1024 * 1024;
/** A C function; `async` runs it on another thread and calls its last argument back. */
export type Native = ((...args: unknown[]) => unknown) & { async(...args: unknown[]): void };

/** Numbers of system calls that libc has no function for, by processor. */
const SYSCALLS = { arm64: { bpf: 280, membarrier: 283 }, x64: { bpf: 321, membarrier: 324 } } as const;

interface Libc {
  readonly koffi: Koffi;
  readonly bpfNumber: number;
  readonly membarrierNumber: number;
  readonly call: Record<keyof typeof PROTOTYPES, Native>;
}

/**
 * `syscall` is variadic in C, but on both processors integers travel in the same registers either way, and a fixed prototype is a third
 * faster than a variadic one.
 */
const PROTOTYPES = {
  syscall: "long syscall(long number, long command, void *attr, ulong size)",
  socket: "int socket(int domain, int type, int protocol)",
  bind: "int bind(int fd, void *address, uint length)",
  setsockopt: "int setsockopt(int fd, int level, int option, void *value, uint length)",
  getsockopt: "int getsockopt(int fd, int level, int option, void *value, void *length)",
  send: "long send(int fd, void *bytes, size_t length, int flags)",
  recv: "long recv(int fd, void *bytes, size_t length, int flags)",
  mmap: "void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset)",
  munmap: "int munmap(void *address, size_t length)",
  setns: "int setns(int fd, int type)",
  unshare: "int unshare(int flags)",
  mount: "int mount(const char *source, const char *target, const char *type, ulong flags, const char *data)",
  umount2: "int umount2(const char *target, int flags)",
  getpagesize: "int getpagesize(void)",
  setrlimit: "int setrlimit(int resource, void *limit)",
} as const;

let loaded: Libc | undefined;

function libc(): Libc {
  loaded ??= loadLibc();
  return loaded;
}

function loadLibc(): Libc {
  const numbers = SYSCALLS[process.arch as keyof typeof SYSCALLS];
  if (process.platform !== "linux" || !numbers || endianness() !== "LE") {
    throw errors.KERNEL_NOT_SUPPORTED(`calls from ${process.platform} on ${process.arch}`, "ENOSYS", "");
  }
  const library = loadKoffi();
  // Node itself is linked to libc, so nothing needs to be found on disk.
  const self = library.load(null);
  const entries = Object.entries(PROTOTYPES).map(([name, prototype]) => [name, self.func(prototype)]);
  return {
    koffi: library,
    bpfNumber: numbers.bpf,
    membarrierNumber: numbers.membarrier,
    call: Object.fromEntries(entries),
  };
}

function loadKoffi(): Koffi {
  try {
    const library = createRequire(import.meta.url)("koffi") as Koffi;
    library.config({ async_stack_size: ASYNC_STACK });
    return library;
  } catch (error) {
    throw errors.KERNEL_NO_LIBRARY("koffi", String(error)).from(error);
  }
}

const ERRNO_NAMES = new Map<number, string>([
  ...Object.entries(constants.errno).map(([name, number]): [number, string] => [number, name]),
  // The kernel's own, which libc does not know: batch operations and test runs answer it.
  [524, "ENOTSUPP"],
  [95, "EOPNOTSUPP"],
  [11, "EAGAIN"],
]);

export function errnoName(number: number): string {
  return ERRNO_NAMES.get(Math.abs(number)) ?? `errno ${Math.abs(number)}`;
}

/** What a call returned, or minus errno; errno is read before anything else can change it. */
function invoke(name: keyof typeof PROTOTYPES, ...args: unknown[]): number {
  const { call, koffi: library } = libc();
  const result = Number(call[name](...args));
  return result < 0 ? -library.errno() : result;
}

function invokeAsync(name: keyof typeof PROTOTYPES, ...args: unknown[]): Promise<number> {
  const { call, koffi: library } = libc();
  return new Promise((resolve, reject) => {
    call[name].async(...args, (error: unknown, result: number | bigint) => {
      if (error) reject(error);
      else resolve(Number(result) < 0 ? -library.errno() : Number(result));
    });
  });
}

function must(operation: string, result: number): number {
  if (result < 0) throw kernelError(operation, errnoName(result));
  return result;
}

export function bpf(command: number, attr: Uint8Array | bigint, size: number): number {
  return invoke("syscall", libc().bpfNumber, command, attr, size);
}

/** As `bpf`, on a thread of the pool. Attr, and every buffer it points to, must live and stay untouched until the promise settles. */
export function bpfAsync(command: number, attr: Uint8Array, size: number): Promise<number> {
  return invokeAsync("syscall", libc().bpfNumber, command, attr, size);
}

/** Until every processor has been where no program of the kernel runs. Kernels that keep processors free of that say no: then nothing is waited for. */
export async function waitForAllProcessors(): Promise<void> {
  const GLOBAL = 1;
  await invokeAsync("syscall", libc().membarrierNumber, GLOBAL, null, 0);
}

/** The address of a buffer. Keeps nothing alive: the caller holds the buffer until the call is over. */
export function addressOf(bytes: Uint8Array): bigint {
  return libc().koffi.address(bytes);
}

/** Memory that never moves and is never freed, for the few calls made so often that asking for addresses would show. */
export function fixedMemory(length: number): { bytes: Buffer; address: bigint } {
  const { koffi: library } = libc();
  const pointer = library.alloc("uint8_t", length);
  return { bytes: Buffer.from(library.view(pointer, length)), address: library.address(pointer) };
}

export function socket(domain: number, type: number, protocol: number): Fd {
  const CLOEXEC = 0x80000;
  return must("socket", invoke("socket", domain, type | CLOEXEC, protocol));
}

export function bind(fd: Fd, address: Uint8Array): void {
  must("bind", invoke("bind", fd, address, address.length));
}

/** Minus errno when it fails: most options are wishes. */
export function setsockopt(fd: Fd, level: number, option: number, value: number): number {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return invoke("setsockopt", fd, level, option, bytes, bytes.length);
}

/** Fills the buffer, whose beginning may be the question; its length, or minus errno. */
export function getsockopt(fd: Fd, level: number, option: number, value: Uint8Array): number {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  const result = invoke("getsockopt", fd, level, option, value, length);
  return result < 0 ? result : length.readUInt32LE();
}

export function send(fd: Fd, bytes: Uint8Array): number {
  return invoke("send", fd, bytes, bytes.length, 0);
}

export function sendAsync(fd: Fd, bytes: Uint8Array): Promise<number> {
  return invokeAsync("send", fd, bytes, bytes.length, 0);
}

const MSG_DONTWAIT = 0x40;

export function receive(fd: Fd, bytes: Uint8Array, wait: "wait" | "now" = "wait"): number {
  return invoke("recv", fd, bytes, bytes.length, wait === "now" ? MSG_DONTWAIT : 0);
}

export function pageSize(): number {
  return invoke("getpagesize");
}

export interface Mapping {
  /** Dangles after `unmap`: no view may be held by then. */
  readonly memory: ArrayBuffer;
  unmap(): void;
}

export function mapMemory(fd: Fd, length: number, access: "read" | "write", offset = 0): Mapping {
  const [PROT_READ, PROT_WRITE, MAP_SHARED] = [1, 2, 1];
  const { call, koffi: library } = libc();
  const protection = access === "write" ? PROT_READ | PROT_WRITE : PROT_READ;
  const address = call.mmap(null, length, protection, MAP_SHARED, fd, offset) as bigint | null;
  if (address === null || BigInt.asIntN(64, address) === -1n) {
    throw kernelError("mmap", errnoName(library.errno()));
  }
  return {
    memory: library.view(address, length),
    unmap: () => void must("munmap", invoke("munmap", address, length)),
  };
}

/** Moves this thread, and no other, into a network namespace. */
export function enterNetwork(fd: Fd): void {
  must("setns", invoke("setns", fd, CLONE_NEWNET));
}

/** Gives this thread, and no other, a new network namespace. */
export function leaveNetwork(): void {
  must("unshare", invoke("unshare", CLONE_NEWNET));
}

const CLONE_NEWNET = 0x40000000;

export function mount(source: string, target: string, type: string, flags = 0): void {
  must(`mount of ${type} on ${target}`, invoke("mount", source, target, type, flags, null));
}

export function unmount(target: string): void {
  const MNT_DETACH = 2;
  must(`unmount of ${target}`, invoke("umount2", target, MNT_DETACH));
}

/** 0, or minus errno. */
export function setrlimit(resource: number, soft: bigint, hard: bigint): number {
  const limit = Buffer.alloc(16);
  limit.writeBigUInt64LE(soft, 0);
  limit.writeBigUInt64LE(hard, 8);
  return invoke("setrlimit", resource, limit);
}

export interface Watch {
  close(): void;
}

const watched = new Set<Fd>();

/**
 * Calls back on the event loop whenever there is something to read. Does not keep the process alive. Close it before the descriptor.
 * A descriptor can be watched once: the event loop refuses a second time, and the library would end the process over it.
 */
export function whenReadable(fd: Fd, onReadable: () => void): Watch {
  if (watched.has(fd)) throw kernelError(`watching ${fd}`, "EEXIST", "it is watched already");
  const handle = libc().koffi.node.poll(fd, { readable: true }, onReadable);
  watched.add(fd);
  handle.unref();
  return {
    close: () => {
      if (watched.delete(fd)) handle.close();
    },
  };
}

/** Functions of another C library, by the prototypes given. */
export function openLibrary<Name extends string>(file: string, prototypes: Record<Name, string>): Record<Name, Native> {
  const { koffi: library } = libc();
  try {
    const handle = library.load(file);
    const entries = Object.entries<string>(prototypes).map(([name, prototype]) => [name, handle.func(prototype)]);
    return Object.fromEntries(entries);
  } catch (error) {
    throw errors.KERNEL_NO_LIBRARY(file, error instanceof Error ? error.message : String(error)).from(error);
  }
}

/** Closing a closed descriptor is a bug, and closing twice may close another file: so it throws. */
export function close(fd: Fd): void {
  closeSync(fd);
}

let poolStarted = false;

/**
 * Starts the threads of the pool now, where we are. They are otherwise started by whatever asks first, and if that happened inside a
 * foreign network namespace, every later asynchronous call would run there.
 */
export function startThreadPool(): void {
  if (poolStarted) return;
  poolStarted = true;
  stat("/", () => {});
}
