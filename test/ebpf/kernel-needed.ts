import { realBpf } from "../../src/kernel/bpf/bpf.ts";

/** Why programs cannot be run here; undefined where they can. A suite that needs them is skipped with it. */
export function whyNoPrograms(): string | undefined {
  if (process.platform !== "linux") return "needs Linux";
  if (process.getuid?.() !== 0) return "needs root";
  try {
    realBpf().createMap({ name: "probe", type: "array", keySize: 4, valueSize: 4, maxEntries: 1 }).close();
    return undefined;
  } catch (error) {
    return `this kernel gives us no BPF: ${(error as Error).message}`;
  }
}
