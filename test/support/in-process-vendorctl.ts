import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vendorctl } from "../../src/cli/testing/fake-context.ts";
import type { Clock } from "../../src/kit/clock.ts";

/** vendorctl in this process, for one cluster, with a home of its own. */
export interface InProcessVendorctl {
  home: string;
  /** What it printed, whatever it exited with. */
  run(...args: string[]): Promise<{ exit: number; out: string; err: string }>;
  /** What it printed on stdout; fails with what it complained about unless it exits with 0. */
  ok(...args: string[]): Promise<string>;
  /** The path of a file with this text. */
  file(name: string, text: string): string;
  close(): void;
}

export function inProcessVendorctl(kubeconfig: string, clock?: Clock): InProcessVendorctl {
  const home = mkdtempSync(join(tmpdir(), "vendorctl-here-"));
  const before = process.env["VENDORCTL_HOME"];
  process.env["VENDORCTL_HOME"] = home;
  const file = (name: string, text: string) => {
    const path = join(home, name);
    writeFileSync(path, text);
    return path;
  };
  const config = file("kubeconfig", kubeconfig);
  const run: InProcessVendorctl["run"] = (...args) =>
    vendorctl(["--kubeconfig", config, ...args], { ...(clock && { clock }) });
  return {
    home,
    run,
    async ok(...args) {
      const { exit, out, err } = await run(...args);
      if (exit !== 0) throw new Error(`vendorctl ${args.join(" ")} exited with ${exit}: ${err}${out}`);
      return out;
    },
    file,
    close() {
      if (before === undefined) delete process.env["VENDORCTL_HOME"];
      else process.env["VENDORCTL_HOME"] = before;
      rmSync(home, { recursive: true, force: true });
    },
  };
}
