import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bgpPlaces } from "../../src/agent/bgp/bird-control.ts";
import { renderComponent } from "../../src/operator/render/render-component.ts";
import { inputsFor } from "../../src/operator/render/testing-inputs.fixture.ts";
import { whyNoBird } from "./frr-router.ts";
import { until } from "./node-lab.ts";

const run = promisify(execFile);
const ROOT = new URL("../..", import.meta.url).pathname;
const why = whyNoBird();
/** Without the kernel's routes: it runs beside whatever runs here. */
const CONFIGURATION = "router id 10.0.0.1;\nprotocol device { }\n";

interface Container {
  name: string;
  livenessProbe: Probe;
  readinessProbe: Probe;
}

interface Probe {
  exec: { command: string[] };
}

describe.skipIf(why !== undefined)(`probes of the container bgp${why ? ` (${why})` : ""}`, () => {
  let directory: string;
  let bgp: ChildProcess;
  let ended: Promise<unknown>;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "probes-"));
    const env = { PATH: process.env["PATH"], RUN_DIR: directory };
    bgp = spawn(process.execPath, [join(ROOT, "bin/vendor"), "bgp"], { env, detached: true, stdio: "ignore" });
    ended = new Promise((resolve) => bgp.once("exit", resolve));
  });
  afterAll(async () => {
    if (bgp.exitCode === null && bgp.signalCode === null) process.kill(-bgp.pid!, "SIGKILL");
    await ended;
    rmSync(directory, { recursive: true, force: true });
  });

  /** What the kubelet would find out, with this directory as the node's. */
  async function asked(): Promise<{ alive: boolean; ready: boolean }> {
    const objects = renderComponent("network", inputsFor({ spec: { vendorNetwork: { bgp: "Enabled" } } }));
    const [daemonSet] = objects.filter(({ kind }) => kind === "DaemonSet") as unknown as {
      spec: { template: { spec: { containers: Container[] } } };
    }[];
    const container = daemonSet!.spec.template.spec.containers.find(({ name }) => name === "bgp")!;
    const succeeds = async ({ exec: { command } }: Probe) => {
      const [program, ...args] = command.map((word) => word.replaceAll("/var/run/vendor", directory));
      return await run(program!, args, { timeout: 2_000, killSignal: "SIGKILL" }).then(
        () => true,
        () => false,
      );
    };
    return { alive: await succeeds(container.livenessProbe), ready: await succeeds(container.readinessProbe) };
  }

  it("BIRD without a configuration is alive and not ready; it is ready when it answers, and dead when it does not", async () => {
    expect(await asked()).toEqual({ alive: true, ready: false });
    const { configuration } = bgpPlaces(directory);
    mkdirSync(dirname(configuration), { recursive: true });
    writeFileSync(configuration, CONFIGURATION);
    const becomes = async (alive: boolean, ready: boolean) =>
      await until(
        async () => JSON.stringify(await asked()) === JSON.stringify({ alive, ready }),
        async () => JSON.stringify(await asked()),
      );
    await becomes(true, true);
    process.kill(-bgp.pid!, "SIGSTOP");
    await becomes(false, false);
    process.kill(-bgp.pid!, "SIGCONT");
    await becomes(true, true);
    process.kill(-bgp.pid!, "SIGKILL");
    await ended;
    expect(await asked()).toEqual({ alive: false, ready: false });
  });
});
