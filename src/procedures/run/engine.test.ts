import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { LEASES, SECRETS } from "../../cluster/kinds.ts";
import type { Action } from "../action.ts";
import { ACTIONS } from "../actions/all.ts";
import { applyObjectsStep, step } from "../plans/steps.ts";
import { type BareCluster, bareCluster, logLine, memoryCopy, planOf, STEPS } from "../testing/bare-cluster.ts";
import { abortRun, listRuns, resumeRun, rollbackRun, startRun } from "./engine.ts";
import { localCopyIn } from "./local-copy.ts";
import type { StepEvent } from "./step-event.ts";

let cluster: BareCluster;
beforeEach(async () => {
  cluster = await bareCluster();
});
afterEach(() => cluster.close());

async function told(events: AsyncIterable<StepEvent>): Promise<string[]> {
  const lines: string[] = [];
  for await (const event of events) {
    if (event.event === "step" && !["running", "waiting", "undoing"].includes(event.state)) {
      lines.push(`${event.id} ${event.state}`);
    }
    if (event.event === "end") lines.push(event.outcome);
  }
  return lines;
}

async function failure(events: AsyncIterable<StepEvent> | Promise<unknown>): Promise<{ code: string; text: string }> {
  try {
    await (Symbol.asyncIterator in events ? told(events) : events);
  } catch (error) {
    return { code: (error as { code: string }).code, text: (error as Error).message };
  }
  throw new Error("nothing failed");
}

const DONE = ["already skipped", "create done", "change done", "patch done", "delete done", "look skipped", "done"];

/** A step that fails until it is told not to, and one that waits until it is stopped. */
let mended = true;
const TROUBLE: Record<string, Action> = {
  ...ACTIONS,
  fail: {
    needed: async () => true,
    apply: async () => {
      if (!mended) throw new Error("it is broken");
    },
  },
  hang: {
    needed: async () => true,
    apply: async (_inputs, { signal }) => {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    },
  },
};
const failing = () => planOf([...STEPS, step("fail", logLine("break"), {})]);
const hanging = () => planOf([...STEPS, step("hang", logLine("hang"), {})]);

describe("a run", () => {
  it("does what is needed, skips what is there, and goes all the way back", async () => {
    const initial = await cluster.objects();
    expect(await told(startRun(cluster.engine(), planOf()))).toEqual(DONE);
    const changed = await cluster.objects();
    const settings = { data: { mode: "new", added: "1" }, labels: { seen: "true" } };
    expect(changed["ConfigMap default/settings"]).toMatchObject(settings);
    expect(Object.keys(changed)).toContain("ConfigMap default/inside");
    const back = ["delete undone", "patch undone", "change undone", "create undone", "rolled-back"];
    expect(await told(rollbackRun(cluster.engine()))).toEqual(back);
    expect(await cluster.objects()).toEqual(initial);
  });

  it("goes back to a step, and forward again from there", async () => {
    await told(startRun(cluster.engine(), planOf()));
    const changed = await cluster.objects();
    const back = ["delete undone", "patch undone", "stopped"];
    expect(await told(rollbackRun(cluster.engine(), { toStep: "change" }))).toEqual(back);
    expect(await told(resumeRun(cluster.engine()))).toEqual(["patch done", "delete done", "look skipped", "done"]);
    expect(await cluster.objects()).toEqual(changed);
  });

  it("stops where a step fails, and goes on there when it is mended", async () => {
    mended = false;
    const engine = cluster.engine({ actions: TROUBLE });
    expect(await failure(startRun(engine, failing()))).toMatchObject({ text: "it is broken" });
    expect(await listRuns(engine)).toMatchObject([
      { record: { outcome: "stopped", why: { message: "it is broken" } } },
    ]);
    expect((await failure(startRun(engine, planOf()))).code).toBe("RUN_UNFINISHED");
    mended = true;
    expect(await told(resumeRun(engine))).toEqual(["break done", "done"]);
    expect((await failure(resumeRun(engine))).code).toBe("RUN_NONE");
  });

  it("takes everything back when a step fails, if it is asked to", async () => {
    mended = false;
    const initial = await cluster.objects();
    const engine = cluster.engine({ actions: TROUBLE });
    const { code, text } = await failure(startRun(engine, failing(), { rollbackOnFailure: true }));
    expect([code, text]).toEqual([
      "RUN_ROLLED_BACK",
      'step "Do break" failed, and everything was rolled back: it is broken',
    ]);
    expect(await cluster.objects()).toEqual(initial);
    mended = true;
  });

  it("saves its journal when it is interrupted or out of time", async () => {
    const late = cluster.engine({ actions: TROUBLE, timeoutMs: 1_500 });
    expect(await failure(startRun(late, hanging()))).toMatchObject({
      code: "RUN_STILL_PROGRESSING",
      text: expect.stringContaining('is at step "Do hang"'),
    });
    const interrupt = new AbortController();
    const engine = cluster.engine({ actions: TROUBLE, signal: interrupt.signal });
    const resumed = failure(resumeRun(engine));
    await until(async () =>
      (await listRuns(engine)).some((run) => "record" in run && run.record.outcome === "running"),
    );
    interrupt.abort();
    expect((await resumed).code).toBe("RUN_INTERRUPTED");
    expect((await abortRun(cluster.engine())).outcome).toBe("aborted");
    expect(await told(startRun(cluster.engine(), planOf()))).toContain("done");
  });

  it("does not wait at its end when it is told not to", async () => {
    const waits: Action = {
      waits: true,
      needed: async () => true,
      apply: async () => {},
      confirm: () => new Promise(() => {}),
    };
    const plan = planOf([...STEPS, step("wait", logLine("wait"), {})]);
    const engine = cluster.engine({ actions: { ...ACTIONS, wait: waits } });
    expect((await told(startRun(engine, plan, { wait: false }))).at(-1)).toBe("stopped");
  });

  it("refuses a way back where a step has none, and leaves that step where it is told to", async () => {
    const objects = [{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "gone", namespace: "default" } }];
    const plan = planOf([...STEPS, applyObjectsStep(logLine("lose", { reversible: "it is lost" }), { objects })]);
    await told(startRun(cluster.engine(), plan));
    expect(await failure(rollbackRun(cluster.engine()))).toMatchObject({
      code: "RUN_IRREVERSIBLE",
      text: 'these steps cannot be undone: "Do lose" (it is lost)',
    });
    await told(rollbackRun(cluster.engine(), { keepIrreversible: true }));
    expect(Object.keys(await cluster.objects())).toContain("ConfigMap default/gone");
  });

  it("is refused beside another, with who and since when, and succeeds one that is silent", async () => {
    const interrupt = new AbortController();
    const first = failure(startRun(cluster.engine({ actions: TROUBLE, signal: interrupt.signal }), hanging()));
    await until(async () => (await listRuns(cluster.engine())).length === 1);
    const { code, text } = await failure(startRun(cluster.engine(), planOf()));
    expect(code).toBe("RUN_HELD");
    expect(text).toMatch(/^another vendorctl is running on this cluster: process \d+ on .+, since \d{4}-/);
    interrupt.abort();
    await first;
    const dead = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "vendorctl", namespace: "kube-system" },
    };
    const live = await cluster.client.get<KubeObject>(LEASES, dead.metadata);
    const spec = { holderIdentity: "elsewhere/1/2", leaseDurationSeconds: 1, renewTime: "2020-01-01T00:00:00.000000Z" };
    await cluster.client.replace(LEASES, { ...live, spec });
    expect((await failure(resumeRun(cluster.engine({ actions: TROUBLE, timeoutMs: 200 })))).code).toBe(
      "RUN_STILL_PROGRESSING",
    );
  });

  it("rolls back the newest first", async () => {
    await told(startRun(cluster.engine(), planOf(STEPS.slice(0, 2))));
    const [older] = await listRuns(cluster.engine());
    await told(startRun(cluster.engine(), planOf(STEPS.slice(2, 4))));
    expect((await failure(rollbackRun(cluster.engine(), { run: older?.id as string }))).code).toBe("RUN_NOT_NEWEST");
    expect((await failure(rollbackRun(cluster.engine(), { run: "nobody" }))).code).toBe("RUN_UNKNOWN");
    expect((await failure(rollbackRun(cluster.engine(), { toStep: "99" }))).code).toBe("RUN_STEP_UNKNOWN");
  });
});

describe("a journal", () => {
  const secrets = async () => {
    const labelSelector = "app.kubernetes.io/managed-by=vendorctl";
    return (await cluster.client.list<KubeObject>(SECRETS, { namespace: "kube-system", labelSelector })).items;
  };
  const spoil = async (suffix: string, change: ((secret: KubeObject) => KubeObject) | "delete") => {
    const found = (await secrets()).find(({ metadata }) => metadata.name.endsWith(suffix)) as KubeObject;
    if (change === "delete") await cluster.client.delete(SECRETS, found.metadata);
    else await cluster.client.replace(SECRETS, change(found));
  };
  const altered = (change: (record: Record<string, unknown>) => object) => (secret: KubeObject) => {
    const data = secret["data"] as Record<string, string>;
    const record = JSON.parse(Buffer.from(data["record"] ?? "", "base64").toString()) as Record<string, unknown>;
    return { ...secret, data: { record: Buffer.from(JSON.stringify(change(record))).toString("base64") } };
  };

  it("keeps what Secrets hold in the cluster only", async () => {
    const folder = mkdtempSync(join(tmpdir(), "local-copy-"));
    const local = localCopyIn(folder, (error) => expect.fail(String(error)));
    await told(startRun(cluster.engine({ local }), planOf()));
    const [run] = await listRuns(cluster.engine());
    const copy = readFileSync(join(folder, "runs", run?.id ?? "", "before-3.json"), "utf8");
    expect(copy).toContain('"name": "keys"');
    expect(copy).not.toContain(Buffer.from("first").toString("base64"));
    expect(local.read(run?.id ?? "", "before-3")).toBeUndefined();
    expect(local.read(run?.id ?? "", "before-4")).toEqual({ inverse: expect.anything() });
    rmSync(folder, { recursive: true });
  });

  it("goes on without a copy on a machine that has no room for one, and says so once", async () => {
    const complaints: unknown[] = [];
    const local = localCopyIn("/dev/null/nowhere", (error) => complaints.push(error));
    expect((await told(startRun(cluster.engine({ local }), planOf()))).at(-1)).toBe("done");
    expect(complaints).toHaveLength(1);
  });

  it("of a newer tool is left to that tool, finished or not", async () => {
    await told(startRun(cluster.engine(), planOf()));
    await spoil(
      "",
      altered((record) => ({ ...record, tool: "v9.0.0", outcome: "stopped" })),
    );
    const { code, text } = await failure(resumeRun(cluster.engine()));
    expect([code, text]).toEqual(["JOURNAL_NEWER", expect.stringContaining("written by vendorctl v9.0.0")]);
    expect((await failure(startRun(cluster.engine(), planOf()))).code).toBe("JOURNAL_NEWER");
    expect((await failure(abortRun(cluster.engine()))).code).toBe("JOURNAL_NEWER");
  });

  it("of an older tool is gone on with, and says so", async () => {
    mended = false;
    const engine = cluster.engine({ actions: TROUBLE });
    await failure(startRun(cluster.engine({ actions: TROUBLE, tool: "v3.30.0" }), failing()));
    mended = true;
    const notes: string[] = [];
    for await (const event of resumeRun(engine)) if (event.event === "note") notes.push(event.text);
    expect(notes).toEqual([expect.stringContaining("was started by vendorctl v3.30.0; v3.31.3 continues it")]);
  });

  it("that cannot be read is named, and can only be given up", async () => {
    await told(startRun(cluster.engine(), planOf()));
    await spoil("", (secret) => ({ ...secret, data: { record: Buffer.from("{half").toString("base64") } }));
    expect((await failure(resumeRun(cluster.engine()))).code).toBe("JOURNAL_DAMAGED");
    expect((await failure(startRun(cluster.engine(), planOf()))).code).toBe("JOURNAL_DAMAGED");
    expect(await abortRun(cluster.engine())).toMatchObject({ outcome: "aborted" });
    expect((await told(startRun(cluster.engine(), planOf()))).at(-1)).toBe("done");
  });

  it("without its plan, or with another, goes nowhere", async () => {
    await told(startRun(cluster.engine(), planOf()));
    await spoil("plan-0", (secret) => ({ ...secret, data: { part: Buffer.from("junk").toString("base64") } }));
    expect((await failure(rollbackRun(cluster.engine()))).text).toContain("its plan is missing or altered");
    await spoil("plan-0", "delete");
    expect((await failure(rollbackRun(cluster.engine()))).code).toBe("JOURNAL_DAMAGED");
  });

  it("that has lost a before-image takes it from the copy on this machine, or says which step is lost", async () => {
    const local = memoryCopy();
    const initial = await cluster.objects();
    await told(startRun(cluster.engine({ local }), planOf()));
    await spoil("before-4-0", "delete");
    expect((await failure(rollbackRun(cluster.engine()))).text).toContain('before step "patch"');
    const whole = { ...local, read: (run: string, name: string) => local.files.get(`${run}/${name}`) };
    await told(resumeRun(cluster.engine({ local: whole })));
    expect(await cluster.objects()).toEqual(initial);
  });

  it("splits what is too big for one Secret, and keeps the newest runs only", async () => {
    const noise = Array.from({ length: 90 }, (_, at) => [`k${at}`, randomBytes(7_500).toString("base64")]);
    const big = (name: string) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace: "default" },
      data: Object.fromEntries(noise),
    });
    const plan = planOf([applyObjectsStep(logLine("big"), { objects: [big("one"), big("two")] })]);
    await told(startRun(cluster.engine(), plan));
    expect((await secrets()).map(({ metadata }) => metadata.name).filter((name) => /plan-1$/.test(name))).toHaveLength(
      1,
    );
    await told(rollbackRun(cluster.engine()));
    for (let i = 0; i < 22; i++) await told(startRun(cluster.engine(), planOf([STEPS[0]!])));
    expect(await listRuns(cluster.engine())).toHaveLength(21);
    expect((await secrets()).some(({ metadata }) => /plan-1$/.test(metadata.name))).toBe(false);
  });
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}
