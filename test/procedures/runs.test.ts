import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { CONFIG_MAPS, SECRETS } from "../../src/cluster/kinds.ts";
import { fingerprint } from "../../src/procedures/fingerprint.ts";
import { makePlan } from "../../src/procedures/make-plan.ts";
import { observe } from "../../src/procedures/observe.ts";
import type { Plan, Step } from "../../src/procedures/plan.ts";
import { mergePatchStep, type StepText, waitOutsideStep } from "../../src/procedures/plans/steps.ts";
import { type BareCluster, bareCluster, STEPS } from "../../src/procedures/testing/bare-cluster.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { openTool, type Tool } from "./kill-sweep/tool-process.ts";

/** The life of a run at the command line: planned, applied, interrupted, resumed, taken back, given up, looked up. */

let cluster: BareCluster;
let url = "";
let here: InProcessVendorctl;
let tool: Tool;

beforeAll(async () => {
  cluster = await bareCluster();
  ({ url } = await cluster.server.listen({ host: "127.0.0.1", port: 0 }));
  here = inProcessVendorctl(kubeconfig());
  tool = openTool(kubeconfig());
});
afterAll(async () => {
  tool.close();
  here.close();
  await cluster.close();
});
beforeEach(async () => {
  await here.run("rollback", "-y");
  await here.run("abort", "-y");
  const labelSelector = "app.kubernetes.io/managed-by=vendorctl";
  await cluster.client.deleteCollection(SECRETS, { namespace: "kube-system", labelSelector });
  await cluster.client.delete(CONFIG_MAPS, { namespace: "default", name: "sign" }).catch(() => {});
});

function kubeconfig(): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: url } }],
    users: [{ name: "u", user: {} }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  });
}

async function planFile(name: string, steps: readonly Step[] = STEPS): Promise<string> {
  return here.file(name, stringify(await planOf(steps)));
}

async function planOf(steps: readonly Step[]): Promise<Plan> {
  const observed = fingerprint(await observe(cluster.client, vendorNames, { server: url }));
  const decided = {
    procedure: "migrate",
    names: "vendor",
    title: "Do something",
    command: "vendorctl migrate",
  } as const;
  return makePlan({ ...decided, observed, steps, notes: ["this is a story"] });
}

const said: StepText = { id: "sign", title: "Wait for a sign", where: "your hands", because: "the story needs it" };
const target = { apiVersion: "v1", kind: "ConfigMap", namespace: "default", name: "sign" };
const SIGN = waitOutsideStep(said, { tell: ["kubectl create configmap sign"], until: [{ target, exists: true }] });
const sign: KubeObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "sign", namespace: "default" } };

describe("a saved plan", () => {
  it("is applied as it is, and tells what was done and what comes next", async () => {
    const file = await planFile("plan.yaml");
    const { exit, out, err } = await here.run("apply", "-f", file, "-y");
    expect(exit, err).toBe(0);
    expect(err).toContain(
      "STEP   WHAT         WHERE     RISK   REVERSIBLE\n1      Do already   default   none   yes\n",
    );
    expect(err).toContain("note: this is a story");
    expect(err).toMatch(
      /ok {2}1\/6 {2}Do already {2}skipped: already done\n.*ok {2}2\/6 {2}Do create {2}[\d.]+s {2}default\n/s,
    );
    expect(out).toMatch(/^done in [\d.]+s: 4 done, 2 skipped \(run migrate-.+\)\nnext: vendorctl status\n$/);
  });

  it("is refused when the cluster has drifted, fact by fact, and when somebody edited it", async () => {
    const plan = await planOf(STEPS);
    const drifted = makePlan({ ...plan, observed: { ...plan.observed, nodes: "7 (abc)", "cluster kind": "eks" } });
    const { exit, err } = await here.run("apply", "-f", here.file("drifted.yaml", stringify(drifted)), "-y");
    expect(exit).toBe(1);
    expect(err).toContain("cluster kind was eks and is");
    expect(err).toContain("nodes was 7 (abc) and is none");
    expect(err).toContain("[PLAN_DRIFTED]");
    const edited = { ...plan, title: "Do something else" };
    expect((await here.run("apply", "-f", here.file("edited.yaml", stringify(edited)), "-y")).err).toContain(
      "[PLAN_ALTERED]",
    );
  });

  it("changes nothing without a yes, or with --dry-run", async () => {
    const before = await cluster.objects();
    const file = await planFile("plan.yaml");
    expect(await here.run("apply", "-f", file)).toMatchObject({
      exit: 64,
      err: expect.stringContaining("[CONFIRMATION_NEEDED]"),
    });
    const dry = await here.run("apply", "-f", file, "--dry-run");
    expect(dry.out).toMatch(/run it with: vendorctl migrate -y\n$/);
    expect(await cluster.objects()).toEqual(before);
  });

  it("shows which fields it would change, whose they are, and exits with 2 when it is asked to", async () => {
    const patch = { data: { mode: "newer" }, metadata: { labels: { team: "net" } } };
    const settings = { ...target, name: "settings" };
    const file = await planFile("plan.yaml", [
      ...STEPS,
      mergePatchStep({ ...said, id: "more" }, { target: settings, patch }),
    ]);
    const { exit, out } = await here.run("apply", "-f", file, "--dry-run=server", "--detailed-exitcode");
    expect(exit).toBe(2);
    expect(out).toMatch(/3 +ConfigMap default\/settings +data\.mode +old +new +vendorctl/);
    expect(out).toMatch(/3 +Secret default\/keys +data\.password +\(not shown\) +\(not shown\) +vendorctl/);
    expect(out).toMatch(/5 +ConfigMap default\/leftover +\(whole object\) +there +deleted/);
    expect(out).toMatch(/7 +ConfigMap default\/settings +metadata\.labels +- +\{"team":"net"\}/);
  });

  it("is told as JSON lines, the result last", async () => {
    const { out } = await here.run("apply", "-f", await planFile("plan.yaml"), "-y", "-o", "json");
    const events = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { event: string });
    expect(events[0]).toMatchObject({ event: "run", title: "Do something", steps: 6, heading: "forward" });
    expect(events.at(-1)).toMatchObject({ event: "result", outcome: "done", done: 4, next: ["vendorctl status"] });
  });
});

describe("a run", () => {
  it("that takes too long ends with 5, and resume waits on", async () => {
    const { exit, err } = await here.run(
      "--timeout",
      "3s",
      "apply",
      "-f",
      await planFile("plan.yaml", [...STEPS, SIGN]),
      "-y",
    );
    expect([exit, err]).toEqual([5, expect.stringContaining("[RUN_STILL_PROGRESSING]")]);
    expect(err).toContain("kubectl create configmap sign");
    expect((await here.run("apply", "-f", await planFile("other.yaml"), "-y")).err).toContain("[RUN_UNFINISHED]");
    await cluster.client.create(CONFIG_MAPS, sign);
    expect((await here.run("resume", "-y")).out).toMatch(/^done in/);
  });

  it("interrupted by Ctrl-C ends with 130, its journal saved here and there, and is resumed by another process", async () => {
    const file = await planFile("plan.yaml", [...STEPS, SIGN]);
    const running = tool.start("apply", "-f", file, "-y", "-v", "1");
    await running.said(/waiting for ConfigMap default\/sign to exist/);
    running.interrupt();
    const { status, err } = await running.ended;
    expect(status).toBe(130);
    expect(err).toMatch(
      /error: interrupted at step "Wait for a sign"; the journal of run (\S+) is saved \[RUN_INTERRUPTED\]\n {2}fix: vendorctl resume {3}# or: vendorctl rollback/,
    );
    const [run] = readdirSync(join(tool.home, "runs")) as [string];
    const copy = readFileSync(join(tool.home, "runs", run, "before-3.json"), "utf8");
    expect(copy).toContain('"kind": "Secret"');
    expect(copy).not.toContain(Buffer.from("first").toString("base64"));
    expect(existsSync(join(tool.home, "runs", run, "record.json"))).toBe(true);
    await cluster.client.create(CONFIG_MAPS, sign);
    expect(await tool.run("resume", "-y")).toMatchObject({ status: 0 });
  });

  it("killed leaves its lease behind, which the next on this machine takes at once", async () => {
    const running = tool.start("apply", "-f", await planFile("plan.yaml", [...STEPS, SIGN]), "-y", "-v", "1");
    await running.said(/waiting for ConfigMap default\/sign to exist/);
    const second = await tool.run("apply", "-f", await planFile("plan.yaml"), "-y");
    expect(second.err).toMatch(
      /another vendorctl is running on this cluster: process \d+ on .+, since .+ \[RUN_HELD\]/,
    );
    await running.kill();
    await cluster.client.create(CONFIG_MAPS, sign);
    const began = Date.now();
    expect(await tool.run("resume", "-y")).toMatchObject({ status: 0 });
    expect(Date.now() - began).toBeLessThan(10_000);
  });

  it("is previewed by --dry-run before it is rolled back, resumed or abandoned", async () => {
    await here.ok("apply", "-f", await planFile("plan.yaml"), "-y");
    const before = await cluster.objects();
    const back = await here.ok("rollback", "--to-step", "2", "--dry-run");
    expect(back).toMatch(/^Do something \(run .+\)\nwould undo 3 steps; nothing was changed\n/);
    expect(back).toMatch(/\n5 +delete .+\n4 +patch .+\n3 +change .+\n$/);
    await here.ok("rollback", "--to-step", "2", "-y");
    expect(await here.ok("resume", "--dry-run")).toMatch(/would continue with 4 steps; nothing was changed\n/);
    expect(await here.ok("abort", "--dry-run")).toMatch(/would abandon run \S+; nothing was changed\n$/);
    await here.ok("resume", "-y");
    expect(await cluster.objects()).toEqual(before);
  });

  it("goes back to a step, is given up there, and is found in the history", async () => {
    await here.ok("apply", "-f", await planFile("plan.yaml"), "-y");
    const back = await here.ok("rollback", "--to-step", "3", "-y");
    expect(back).toMatch(/^stopped in .+ 2 done, 1 skipped, 3 left .+\nnext: vendorctl resume\n$/s);
    const gone = await here.run("abort", "-y");
    expect(gone.err).toMatch(/4 +patch +Do patch +pending/);
    expect(gone.out).toMatch(/^run \S+ is abandoned; the cluster stays as it is\nnext: vendorctl check\n$/);
    const [row = "", other] = (await here.ok("history")).trim().split("\n").slice(1);
    expect([row, other]).toEqual([expect.stringMatching(/^migrate-\S+ +aborted +3\/6 .+ Do something$/), undefined]);
    const one = await here.ok("history", row.split(" ")[0] as string);
    expect(one).toMatch(/outcome: +aborted\n/);
    expect(await here.ok("rollback", "--run", row.split(" ")[0] as string, "-y")).toMatch(/^rolled back in/);
  });
});

describe("bad input", () => {
  const table: [what: string, args: () => string[], code: string, exit: number][] = [
    ["nothing to resume", () => ["resume", "-y"], "RUN_NONE", 1],
    ["nothing to roll back", () => ["rollback", "-y"], "RUN_NONE", 1],
    ["nothing to abort", () => ["abort", "-y"], "RUN_NONE", 1],
    ["a run nobody knows", () => ["resume", "--run", "nobody", "-y"], "RUN_UNKNOWN", 64],
    ["a run nobody knows, looked up", () => ["history", "nobody"], "RUN_UNKNOWN", 64],
    ["an empty step", () => ["rollback", "--to-step", " "], "BAD_VALUE", 64],
    ["an empty run", () => ["abort", "--run", ""], "BAD_VALUE", 64],
    ["a wait that is neither", () => ["resume", "--wait=maybe"], "BAD_VALUE", 64],
    ["a dry run nowhere", () => ["switch", "--to", "BPF", "--dry-run=moon"], "BAD_VALUE", 64],
    ["a plan of nothing", () => ["plan"], "USAGE", 64],
    ["a plan of an unknown command", () => ["plan", "fly"], "UNKNOWN_COMMAND", 64],
    ["a diff of a wrong flag", () => ["diff", "switch", "--to", "moon"], "BAD_VALUE", 64],
    ["words nobody speaks", () => ["--names", "cilium", "history"], "BAD_VALUE", 64],
  ];
  it.each(table)("%s", async (_what, args, code, exit) => {
    const before = await cluster.objects();
    const ran = await here.run(...args());
    expect([ran.exit, ran.err]).toEqual([
      exit,
      expect.stringMatching(new RegExp(`^error: .+ \\[${code}\\]\\n( {2}fix: .+\\n)?$`)),
    ]);
    expect(await cluster.objects()).toEqual(before);
  });
});
