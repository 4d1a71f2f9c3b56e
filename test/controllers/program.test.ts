import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import type { Transport } from "../../src/api/transport.ts";
import { LEASES } from "../../src/cluster/kinds.ts";
import type { ProgramContext } from "../../src/cluster/program.ts";
import { controllersProgram } from "../../src/controllers/program.ts";
import { CONFIGURATIONS, PROFILES } from "../../src/controllers/stored-kinds.ts";
import { silentLog } from "../../src/kit/log.ts";
import { type ControllersLab, controllersLab, eventually, read } from "./controllers-lab.ts";
import { type RunningCopy, runCopy } from "./run-program.ts";

/** vendor-kube-controllers as the process it is: one of its copies leads, all of them answer, and it stops when asked. */

let world: ControllersLab;
const copies: RunningCopy[] = [];
beforeEach(async () => {
  world = await controllersLab();
});
afterEach(async () => {
  for (const copy of copies.splice(0)) await copy.stop();
  await world.close();
});

function start(podName: string, transport: Transport = world.server.transport()): RunningCopy {
  const copy = runCopy(podName, transport);
  copies.push(copy);
  return copy;
}

const holder = async () => {
  const lease = await read<KubeObject>(world.client, LEASES, {
    namespace: "vendor-system",
    name: "vendor-kube-controllers",
  });
  return (lease?.["spec"] as { holderIdentity?: string } | undefined)?.holderIdentity;
};

describe("the program", () => {
  it("leads, is ready, counts what it does, and gives the lease back when it is asked to stop", async () => {
    const copy = start("first");
    await eventually(
      () => read(world.client, PROFILES, { name: "kns.default" }),
      (profile) => profile !== undefined,
    );
    expect(await holder()).toMatch(/^first_/);
    expect(await copy.ask("/livez")).toEqual({ status: 200, text: "ok" });
    expect((await copy.ask("/readyz")).status).toBe(200);
    const { text } = await copy.ask("/metrics");
    expect(text).toContain("vendor_controllers_leading 1");
    expect(text).toContain('vendor_controllers_reconciles_total{controller="profiles",result="ok"}');
    await copy.stop();
    expect(await holder()).toBeUndefined();
  });

  it("a second copy waits, ready, and takes over when the first has stopped", async () => {
    const first = start("first");
    await eventually(holder, (name) => name?.startsWith("first_") ?? false);
    const second = start("second");
    expect((await second.ask("/readyz")).status).toBe(200);
    expect((await second.ask("/metrics")).text).toContain("vendor_controllers_leading 0");
    await first.stop();
    await eventually(holder, (name) => name?.startsWith("second_") ?? false);
  });

  it("serves metrics where the configuration says, and moves when it changes", async () => {
    const copy = start("first");
    await eventually(
      () => read<KubeObject>(world.client, CONFIGURATIONS, { name: "default" }),
      (object) => object?.["status"] !== undefined,
    );
    const patch = { spec: { prometheusMetricsPort: 9999 } };
    await world.client.patch(CONFIGURATIONS, { name: "default" }, { type: "merge", patch });
    expect((await copy.ask("/metrics", 9999)).text).toContain("vendor_controllers_leading 1");
    expect((await copy.ask("/metrics")).text).toBe("");
  });

  it("is not ready while a kind cannot be listed, and names it", async () => {
    const transport = world.server.transport();
    let refuse = true;
    const copy = start("first", {
      request: (request) => {
        if (refuse && request.path.endsWith("/ipamblocks")) throw new Error("connection refused");
        return transport.request(request);
      },
      close: () => {},
    });
    await eventually(
      () => copy.ask("/readyz"),
      ({ status, text }) => status === 503 && text.includes("waiting for the first list of ipamblocks"),
    );
    refuse = false;
    await eventually(
      () => copy.ask("/readyz"),
      ({ status }) => status === 200,
    );
  });

  it("is not ready while nobody answers it, whether it leads or waits", async () => {
    let cut = true;
    const transport = world.server.transport();
    const copy = start("first", {
      request: (request) => (cut ? Promise.reject(new Error("connection refused")) : transport.request(request)),
      close: () => {},
    });
    expect(await copy.ask("/readyz")).toMatchObject({
      status: 503,
      text: expect.stringContaining("[-]api failed: connection refused"),
    });
    expect((await copy.ask("/livez")).status).toBe(200);
    cut = false;
    await eventually(
      () => copy.ask("/readyz"),
      ({ status }) => status === 200,
    );
  });

  it("ends with a code when its environment makes no sense", async () => {
    const ended = controllersProgram({ ...EMPTY_WORLD, env: { AUTO_HOST_ENDPOINTS: "perhaps" } });
    await expect(ended).rejects.toMatchObject({ code: "CONTROLLERS_ENV", exitCode: 78 });
  });
});

const EMPTY_WORLD: ProgramContext = {
  env: {},
  transport: () => {
    throw new Error("not reached");
  },
  signal: new AbortController().signal,
  log: silentLog,
  listen: () => Promise.reject(new Error("not reached")),
};
