// npm run test:kernels -- KERNEL… WORD…: the tests of test/kernels on other kernels than the one running here, each in an emulated machine.
import { join } from "node:path";
import { bundleToFile } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { acceleration, boot, machine } from "./kernels/boot.mjs";
import { writeInitramfs } from "./kernels/initramfs.mjs";
import { kernelPackage } from "./kernels/kernel-package.mjs";
import { Problem, run, runAsScript, say } from "./say.mjs";
import { setup } from "./setup.mjs";

const KERNELS = [
  { name: "5.10", suites: ["bullseye", "bullseye-security"] },
  { name: "6.1", suites: ["bookworm", "bookworm-security"] },
  { name: "6.12", suites: ["trixie", "trixie-security"] },
];

/** A minute where there are processors to be had; emulation suffers most where there are none. */
const TIMEOUT_MS = 900_000;

async function main(args) {
  const named = KERNELS.filter(({ name }) => args.includes(name));
  const only = args.filter((word) => !KERNELS.some(({ name }) => name === word));
  const strange = only.find((word) => !/^[a-z]+$/i.test(word));
  if (strange) {
    const names = KERNELS.map(({ name }) => name).join(", ");
    throw new Problem(`there is no kernel ${strange}`, `choose from ${names}, or give a word of a test's name`);
  }
  setup();
  const chosen = named.length > 0 ? named : KERNELS;
  const total = { ok: 0, failed: 0, skipped: 0 };
  const missing = whyNoMachine();
  const stories = missing ? undefined : await bundleToFile("test/kernels/main.ts");
  for (const kernel of chosen) {
    const counted = missing ? skipped(kernel.name, missing) : await runOn(kernel, stories, only);
    for (const key of Object.keys(total)) total[key] += counted[key];
  }
  say(`${total.ok} ok, ${total.failed} failed, ${total.skipped} skipped, on ${chosen.length} kernels`);
  return total.failed === 0 ? 0 : 1;
}

function whyNoMachine() {
  const wanted = machine();
  if (process.platform !== "linux" || !wanted) return `no machine is known for ${process.platform} on ${process.arch}`;
  if (!run(wanted.program, ["--version"]).ok) return `needs ${wanted.program} (Debian: ${wanted.debian})`;
  return undefined;
}

function skipped(name, reason) {
  say(`skip  ${name.padEnd(5)} ${reason}`);
  return { ok: 0, failed: 0, skipped: 1 };
}

async function runOn({ name, suites }, stories, only) {
  let kernel;
  try {
    kernel = kernelPackage(name, suites);
  } catch (error) {
    return skipped(name, `no such kernel to be had: ${error.message}`);
  }
  const initramfs = join(ROOT, "node_modules/.cache/kernels", name, "initramfs.cpio");
  writeInitramfs(initramfs, { stories, modules: kernel.modules });
  const started = Date.now();
  const counted = { ok: 0, failed: 0, skipped: 0 };
  let complete = false;
  const onSaid = (said) => {
    if (said.outcome === "end") complete = said.stories === counted.ok + counted.failed + counted.skipped;
    else if (said.outcome === "note") say(`      ${said.text}`);
    else {
      counted[said.outcome]++;
      say(`${LABELS[said.outcome]}  ${name.padEnd(5)} ${said.story}${said.seconds ? `  ${said.seconds} s` : ""}`);
      if (said.text) say(`        ${said.text.replaceAll("\n", "\n        ")}`);
    }
  };
  say(`boot  ${name.padEnd(5)} ${kernel.release}, ${acceleration().name}`);
  const { ended, console } = await boot({ image: kernel.image, initramfs, only, timeoutMs: TIMEOUT_MS, onSaid });
  if (!complete) {
    counted.failed++;
    say(`FAIL  ${name.padEnd(5)} the stories did not come to their end: ${ended}; the console's last lines:`);
    for (const line of console) say(`        ${line}`);
  }
  say(`      ${name.padEnd(5)} ${((Date.now() - started) / 1000).toFixed(0)} s`);
  return counted;
}

const LABELS = { ok: "ok  ", failed: "FAIL", skipped: "skip" };

await runAsScript(import.meta.url, main);
