// Boots a kernel in an emulated machine and listens to its console.
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { INSIDE } from "./initramfs.mjs";

const MACHINES = {
  arm64: {
    program: "qemu-system-aarch64",
    debian: "qemu-system-arm",
    args: ["-machine", "virt"],
    processor: "cortex-a72",
    console: "ttyAMA0",
  },
  x64: {
    program: "qemu-system-x86_64",
    debian: "qemu-system-x86",
    args: ["-machine", "q35"],
    // The emulator of Debian 12 now and then spoils the flags after this one instruction, and a kernel that uses it falls.
    processor: "max,-cx16",
    flag: /^flags\s*:.* (?:vmx|svm)\b/m,
    console: "ttyS0",
  },
};

export function machine() {
  return MACHINES[process.arch];
}

/** By the processor itself where it can; else emulated in software, which is slow, and the same everywhere. */
export function acceleration() {
  return processorHelps()
    ? { name: "kvm", args: ["-accel", "kvm", "-cpu", "host"] }
    : { name: "tcg", args: ["-accel", "tcg,thread=multi", "-cpu", machine().processor] };
}

/** A machine that is a virtual one itself may offer the device without the processor's part: an ordinary kernel then hangs in it. */
function processorHelps() {
  const { flag } = machine();
  try {
    closeSync(openSync("/dev/kvm", "r+"));
    return !flag || flag.test(readFileSync("/proc/cpuinfo", "utf8"));
  } catch {
    return false;
  }
}

/** What the stories say to us in a line of a console, which is not theirs alone. */
export function heard(line) {
  try {
    return JSON.parse(/@@ (\{.*\})/.exec(line)?.[1] ?? "null") ?? undefined;
  } catch {
    // The kernel spoke in between. The last line has the count, so nothing is lost unnoticed.
    return undefined;
  }
}

/**
 * Resolves, when the machine is off or the time is up, with `{ ended, console }`: why it ended, and its last lines. `onSaid` hears the lines
 * the stories print for us, which begin with a mark because the kernel talks on the same console; `only`: words of the stories to run.
 */
export function boot({ image, initramfs, only, timeoutMs, onSaid }) {
  const { program, args, console: tty } = machine();
  // When the first process ends the kernel panics, restarts at once, and the machine is told not to.
  const commandLine = `console=${tty} loglevel=4 panic=-1 rdinit=${INSIDE.node} -- ${[INSIDE.stories, ...only].join(" ")}`;
  const child = spawn(
    program,
    [
      ...[...args, ...acceleration().args, "-smp", "2", "-m", "1536", "-nodefaults", "-display", "none"],
      ...["-no-reboot", "-serial", "stdio", "-kernel", image, "-initrd", initramfs, "-append", commandLine],
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  return new Promise((resolve) => {
    const console = [];
    let timedOut = false;
    const stop = () => child.kill("SIGKILL");
    const timer = setTimeout(() => {
      timedOut = true;
      stop();
    }, timeoutMs);
    const interrupted = () => process.exit(1);
    process.once("exit", stop).once("SIGINT", interrupted).once("SIGTERM", interrupted);
    const listen = (line) => {
      const said = heard(line);
      if (said) onSaid(said);
      else console.push(line.replace(/\r$/, ""));
      if (console.length > 60) console.shift();
    };
    createInterface({ input: child.stdout }).on("line", listen);
    createInterface({ input: child.stderr }).on("line", listen);
    child.on("error", (error) => console.push(error.message));
    child.on("close", (status) => {
      clearTimeout(timer);
      process.off("exit", stop).off("SIGINT", interrupted).off("SIGTERM", interrupted);
      resolve({ ended: timedOut ? `it took more than ${timeoutMs / 1000} s` : `qemu ended with ${status}`, console });
    });
  });
}
