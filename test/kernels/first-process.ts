import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { mount, openLibrary } from "../../src/kernel/sys.ts";

/** Numbers of the call that loads a module from a file, by processor. */
const LOAD_MODULE = { arm64: 273, x64: 313 } as const;
const RESTART = 0x1234567;

const PROTOTYPES = {
  loadModule: "long syscall(long number, int fd, const char *parameters, int flags)",
  reboot: "int reboot(int command)",
} as const;

const FILE_SYSTEMS = [
  ["proc", "/proc"],
  ["sysfs", "/sys"],
  ["devtmpfs", "/dev"],
  ["tmpfs", "/run"],
  ["tmpfs", "/tmp"],
  ["bpf", "/sys/fs/bpf"],
  ["cgroup2", "/sys/fs/cgroup"],
] as const;

/** What a kernel has nobody else to do: the file systems everybody expects, and its modules. Which module it refused, with the reason. */
export function prepareMachine(): string[] {
  for (const [type, path] of FILE_SYSTEMS) {
    mkdirSync(path, { recursive: true });
    mount(type, path, type);
  }
  const order = readFileSync("/modules/order", "utf8").split("\n");
  return order.filter((name) => name !== "" && !loadModule(`/modules/${name}`));
}

function loadModule(path: string): boolean {
  const { loadModule: load } = libc();
  const fd = openSync(path, "r");
  try {
    return Number(load(LOAD_MODULE[process.arch as keyof typeof LOAD_MODULE], fd, "", 0)) === 0;
  } finally {
    closeSync(fd);
  }
}

/** The emulator is told to end where a machine would start again. */
export function endMachine(): void {
  libc().reboot(RESTART);
}

function libc() {
  return openLibrary("libc.so.6", PROTOTYPES);
}
