import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { bundleToFile } from "../build.mjs";
import { heard } from "./boot.mjs";

const missing = process.platform !== "linux" ? "needs Linux" : process.getuid?.() !== 0 ? "needs root" : undefined;

describe.skipIf(missing)(`the scenarios of other kernels${missing ? ` (${missing})` : ""}`, () => {
  it("hold on this one, bundled as they are for those", async () => {
    const child = spawn(process.execPath, [await bundleToFile("test/kernels/main.ts")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const told = [];
    createInterface({ input: child.stdout }).on("line", (line) => told.push(heard(line)));
    await new Promise((resolve) => child.on("close", resolve));
    expect(told.filter((said) => said?.outcome === "failed")).toEqual([]);
    expect(told.filter((said) => said?.outcome === "ok").length).toBeGreaterThanOrEqual(4);
    expect(told.at(-1)).toMatchObject({ outcome: "end" });
  });
});
