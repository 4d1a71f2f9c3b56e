import { type ExecFileException, execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** `npm run release`, and the file it makes where nothing else of ours is: no checkout, no node_modules. */

const base = mkdtempSync(join(tmpdir(), "vendorctl-release-"));
const [published, elsewhere] = [join(base, "release"), join(base, "bin")];
const env = { PATH: `${elsewhere}:${process.env["PATH"] ?? ""}`, HOME: base, VENDORCTL_HOME: join(base, "state") };
const cluster = ["--name", "release-file"];

const NOT_STARTED = -1;

interface Ran {
  status: number;
  out: string;
  err: string;
}

function run(command: string, ...args: string[]): Promise<Ran> {
  return new Promise((done) => {
    execFile(command, args, { cwd: elsewhere, env }, (error: ExecFileException | null, out, err) =>
      done({ status: error === null ? 0 : typeof error.code === "number" ? error.code : NOT_STARTED, out, err }),
    );
  });
}

const vendorctl = (...args: string[]) => run(join(elsewhere, "vendorctl"), ...args);

beforeAll(async () => {
  mkdirSync(elsewhere);
  const made = await run(process.execPath, join(import.meta.dirname, "../../tools/release.mjs"), published);
  expect(made, made.err).toMatchObject({ status: 0 });
  const [tool = ""] = readdirSync(published).filter((name) => name.startsWith("vendorctl-"));
  copyFileSync(join(published, tool), join(elsewhere, "vendorctl"));
  symlinkSync("vendorctl", join(elsewhere, "kubectl-vendor"));
});

afterAll(async () => {
  await vendorctl("cluster", "down", ...cluster);
  rmSync(base, { recursive: true, force: true });
});

describe("the self-contained file of a release", () => {
  it("comes with the checksums of what is beside them", () => {
    const lines = readFileSync(join(published, "SHA256SUMS"), "utf8").trimEnd().split("\n");
    expect(lines.map((line) => line.slice(66)).sort()).toEqual(
      readdirSync(published)
        .filter((name) => name !== "SHA256SUMS")
        .sort(),
    );
    for (const line of lines) {
      const [, sum, name = ""] = /^([0-9a-f]{64}) {2}(\S+)$/.exec(line) ?? [];
      expect(
        createHash("sha256")
          .update(readFileSync(join(published, name)))
          .digest("hex"),
      ).toBe(sum);
    }
  });

  it("shows its version and its help, and explains codes", async () => {
    expect((await vendorctl("version", "--client")).out).toMatch(/^vendorctl +v\d+\.\d+\.\d+$/m);
    expect((await vendorctl("--help")).out).toContain("Usage: vendorctl");
    const explained = await vendorctl("explain", "BAD_VALUE");
    expect(explained.out).toContain('error: --timeout cannot be "soon" [BAD_VALUE]');
  });

  it("is a plugin of kubectl under the name kubectl-vendor", async (context) => {
    const said = await run("kubectl", "vendor", "version", "--client");
    if (said.status === NOT_STARTED) return context.skip("needs kubectl");
    expect(said.out).toMatch(/^vendorctl +v/m);
  });

  it("starts a cluster of simulated nodes, checks it, and plans an install from the manifests inside", async () => {
    const up = await vendorctl("cluster", "up", ...cluster, "--paper", "--nodes", "1", "--detach");
    expect(up, up.err).toMatchObject({ status: 0 });
    const kubeconfig = (await vendorctl("cluster", "kubeconfig", ...cluster)).out.trim();
    const checked = await vendorctl("check", "--pre", "--kubeconfig", kubeconfig);
    expect(checked, checked.err).toMatchObject({ status: 0 });
    expect(checked.out).toContain("next: vendorctl install");
    const planned = await vendorctl("plan", "install", "--kubeconfig", kubeconfig);
    expect(planned, planned.err).toMatchObject({ status: 0 });
    expect(planned.out).toContain("operator-crds.yaml");
  });

  it("refuses real nodes with a code and the reason", async () => {
    const refused = await vendorctl("cluster", "up", "--name", "real", "--runtime", "netns");
    expect(refused.status).toBe(69);
    expect(refused.err).toContain("self-contained file of a release");
    expect(refused.err).toContain("[REAL_NODES_IMPOSSIBLE]");
  });
});
