import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const BIN = fileURLToPath(new URL("../../bin/vendorctl", import.meta.url));

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(BIN, args, { encoding: "utf8" });
  return { status, stdout, stderr };
}

describe("bin/vendorctl, the real executable", () => {
  it("runs from anywhere, built from the sources as they are", () => {
    expect(run("version", "--client")).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^COMPONENT +VERSION\nvendorctl +v\d/),
      stderr: "",
    });
  });

  it("prints every format when bundled", () => {
    expect(run("version", "--client", "-o=yaml").stdout).toMatch(/^client:\n {2}version: v/);
    expect(JSON.parse(run("explain", "CLUSTER_UNREACHABLE", "-o=json").stdout)).toMatchObject({ exitCode: 69 });
  });

  it("exits as the failure says, with nothing on stdout", () => {
    expect(run("clustr")).toEqual({
      status: 64,
      stdout: "",
      stderr: "error: unknown command 'clustr' [UNKNOWN_COMMAND]\n  fix: did you mean cluster?\n",
    });
  });

  it("ends quietly when its reader goes away", async () => {
    const child = spawn(BIN, ["--help"], { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.destroy();
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      stderr += text;
    });
    const status = await new Promise((resolve) => child.on("close", resolve));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  it("completes in a real bash", () => {
    const script = `source <(vendorctl completion bash); COMP_WORDS=(vendorctl cluster k); COMP_CWORD=2; _vendorctl; echo "\${COMPREPLY[@]}"`;
    const { stdout } = spawnSync("bash", ["-c", script], {
      encoding: "utf8",
      env: { ...process.env, PATH: `${BIN.replace(/\/[^/]+$/, "")}:${process.env["PATH"]}` },
    });
    expect(stdout).toBe("kubeconfig\n");
  });
});
