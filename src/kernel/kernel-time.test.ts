import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { transformSync } from "esbuild";
import { describe, expect, it } from "vitest";
import { kernelTime, namespaceShift, sinceBoot } from "./kernel-time.ts";

const MINUTE_NS = 60_000_000_000n;
const OFFSETS = "/proc/self/timens_offsets";
const ownShift = () => namespaceShift(existsSync(OFFSETS) ? readFileSync(OFFSETS, "utf8") : "");

describe("kernel time", () => {
  it("never lies before boot: an age beyond the uptime counts from boot", () => {
    expect(sinceBoot(30n * MINUTE_NS, 120n * MINUTE_NS)).toBe(0n);
    expect(sinceBoot(30n * MINUTE_NS, 30n * MINUTE_NS)).toBe(0n);
    expect(sinceBoot(30n * MINUTE_NS, 10n * MINUTE_NS)).toBe(20n * MINUTE_NS);
  });

  it.each<[offsets: string, shift: bigint]>([
    ["", 0n],
    ["monotonic           0         0\nboottime            0         0\n", 0n],
    ["monotonic       86400         5\nboottime            0         0\n", 86_400_000_000_005n],
    ["monotonic       -3600         0\nboottime        -3600         0\n", -3_600_000_000_000n],
    ["monotonic          -1 500000000\n", -500_000_000n],
  ])("reads the shift of a time namespace from %j", (offsets, shift) => {
    expect(namespaceShift(offsets)).toBe(shift);
  });

  it("is the machine's uptime less what it was suspended", () => {
    const uptime = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
    // In a time namespace the uptime is the namespace's own, too.
    const seenHere = kernelTime() + ownShift();
    expect(Number(seenHere) / 1e9).toBeLessThanOrEqual(uptime + 1);
  });

  it("is the same inside a time namespace as outside, where Node's own clock is not", (context) => {
    if (process.getuid?.() !== 0) context.skip("needs root: a time namespace");
    const { code } = transformSync(readFileSync(new URL("kernel-time.ts", import.meta.url), "utf8"), { loader: "ts" });
    const script = `${code}; console.log(\`\${kernelTime()} \${process.hrtime.bigint()}\`);`;
    const node = [process.execPath, "--input-type=module", "--eval", script];
    const printed = execFileSync("unshare", ["--time", "--monotonic", "86400", "--fork", ...node], {
      encoding: "utf8",
    });
    const [inside, shifted] = printed.trim().split(" ").map(BigInt);
    expect(Math.abs(Number(kernelTime() - inside!))).toBeLessThan(Number(MINUTE_NS));
    expect(Number(shifted! - inside!) / 1e9).toBeCloseTo(86_400, 0);
  });
});
