import { describe, expect, it } from "vitest";
import { calicoNames } from "../../api/names.ts";
import type { OverlayReport } from "../../api/protocol/agent-report.ts";
import { EXPLANATIONS } from "../../api/validation/explain.ts";
import type { Observation } from "../observation.ts";
import type { RunOutcome } from "../run/run-record.ts";
import { ADDRESS_ROWS } from "../testing/address-rows.ts";
import { acting, agent, NOW, proof, type Row, running, status } from "../testing/checked-clusters.ts";
import { HEALTH_ROWS, LEFTOVER_ROWS, ROLLOUT_ROWS } from "../testing/maintenance-rows.ts";
import { type Differently, node, object, observed } from "../testing/observed.ts";
import { NETWORK_ROWS, PLATFORM_ROWS } from "../testing/platform-rows.ts";
import { INSTALLATION_ROWS, PROXY_ROWS } from "../testing/service-rows.ts";
import { VERSION_ROWS } from "../testing/version-rows.ts";
import { CHECKS } from "./all.ts";
import { blockingResults, type RunOptions, runChecks, verdictOf } from "./run-checks.ts";
import { SUBJECTS } from "./subjects.ts";

const ROWS: readonly Row[] = [
  ...PLATFORM_ROWS,
  ...NETWORK_ROWS,
  ...ADDRESS_ROWS,
  ...PROXY_ROWS,
  ...INSTALLATION_ROWS,
  ...VERSION_ROWS,
  ...ROLLOUT_ROWS,
  ...HEALTH_ROWS,
  ...LEFTOVER_ROWS,
];

function result(row: Row, differently: Differently, options: RunOptions = {}) {
  const seen = observed({ ...row.like, ...differently });
  return runChecks(seen, row.for, { now: NOW, ...options }).find(({ code }) => code === row.code)!;
}

describe("every check", () => {
  it("has a row here, under a code of its own", () => {
    expect(ROWS.map(({ code }) => code).sort()).toEqual(CHECKS.map(({ code }) => code).sort());
    expect(new Set(CHECKS.map(({ code }) => code)).size).toBe(CHECKS.length);
  });

  it.each(ROWS)("$code finds it, with evidence, reason and fix", (row) => {
    const found = result(row, row.wrong, row.options);
    expect(found).toMatchObject({
      status: row.as,
      reason: expect.stringMatching(/\w/),
      fix: expect.stringMatching(/\w/),
    });
    expect(found.evidence.join("\n")).toContain(row.names);
    expect(found.rule).not.toBe("");
  });

  it.each(ROWS)("$code has nothing against a cluster that is fine", (row) => {
    expect(result(row, row.fine ?? {}, row.fineOptions)).toMatchObject({ status: "ok" });
  });

  it("says the same as validation does where the rule is already there", () => {
    for (const { code, title, rule } of CHECKS) {
      expect(SUBJECTS[code], code).toMatch(/^.{4,44}$/);
      const known = EXPLANATIONS[code];
      if (known) expect({ title, rule }).toEqual({ title: known.title, rule: known.rule });
    }
  });
});

describe("what keeps a procedure from starting", () => {
  const old = { nodes: [node("old", { osImage: "Debian 9", kernelVersion: "4.9.0" })] };
  const codes = (differently: Differently, procedure: "install" | "switch" | "upgrade", options: RunOptions = {}) =>
    blockingResults(observed(differently), procedure, { now: NOW, ...options }).map(({ code }) => code);

  it("is what eBPF cannot do, where eBPF is wanted", () => {
    expect(codes(old, "install")).toEqual(["EBPF_KERNEL_TOO_OLD"]);
    expect(codes(old, "install", { dataplane: "Nftables" })).toEqual([]);
  });

  it("is not that nodes wait for a CNI, which is what an installation brings them", () => {
    const waiting = ["a", "b"].map((name) => node(name, { ready: false, waitsForCni: true }));
    expect(codes({ nodes: waiting }, "install")).toEqual([]);
    expect(verdictOf(runChecks(observed({ nodes: waiting }), "install", { now: NOW }))).toBe("ok");
    const down = [node("a", { ready: false })];
    expect(codes({ nodes: down }, "install")).toEqual(["NO_ROOM_FOR_PODS"]);
  });

  it("is not what its own plan does first", () => {
    const ipvs = { ...{ service: running() }, proxy: { mode: "ipvs", modeEvidence: "a flag" } } as const;
    expect(codes(ipvs, "switch")).toEqual([]);
    expect(runChecks(observed(ipvs), "switch").find(({ code }) => code === "SERVICE_PROXY_IPVS")?.status).toBe("fail");
  });

  it("is nothing that was accepted by its code", () => {
    expect(codes(old, "install", { suppress: ["EBPF_KERNEL_TOO_OLD"] })).toEqual([]);
    const results = runChecks(observed(old), "install", { suppress: ["EBPF_KERNEL_TOO_OLD"] });
    expect(results.find(({ code }) => code === "EBPF_KERNEL_TOO_OLD")?.status).toBe("suppressed");
    expect(verdictOf(results)).toBe("ok");
  });

  it("never keeps an upgrade, or the way back to the nftables data plane, from curing what is degraded", () => {
    const service = { ...running(), statuses: [status("network", "Degraded", "it is ill")] };
    expect(codes({ service }, "upgrade")).toEqual([]);
    expect(codes({ service }, "switch", { dataplane: "Nftables" })).toEqual([]);
    expect(codes({ service }, "switch")).toEqual(["STATUS_DEGRADED"]);
  });

  it("is no single object that is not in effect: any tenant could keep the cluster from a switch", () => {
    const partial = status("network", "Degraded", "a pod claims another's address", "NodeProblems");
    const service = { ...running(), statuses: [partial] };
    expect(codes({ service }, "switch")).toEqual([]);
    const both = { ...service, statuses: [partial, status("ippools", "Degraded", "it is ill")] };
    expect(codes({ service: both }, "switch")).toEqual(["STATUS_DEGRADED"]);
  });
});

it("takes a private name that only this machine cannot resolve for no finding", () => {
  const options = { now: NOW, ...proof("unresolved") };
  const found = runChecks(observed({}), "install", options).find(({ code }) => code === "API_ADDRESS_UNRESOLVED");
  expect(found).toMatchObject({ status: "skip", evidence: [expect.stringContaining("private name")] });
});

it("rests what it says of VXLAN on what agents found by probes, with their nodes and since when", () => {
  const found = (...overlays: (OverlayReport | undefined)[]) => {
    const agents = overlays.map((overlay, at) => agent({ node: `worker-${at + 1}` }, { overlay }));
    const results = runChecks(observed({ service: { ...acting(), agents } }), "running", { now: NOW });
    const { status: is, evidence } = results.find(({ code }) => code === "VXLAN_BETWEEN_NODES")!;
    return [is, ...evidence];
  };
  const verified = (verifiedSince: string | undefined): OverlayReport => ({ verifiedSince, losses: [] });
  const lost = { verifiedSince: undefined, losses: ["worker-1 to worker-2 (UDP 4789 from 10.0.0.1 to 10.0.0.2)"] };
  const [early, late] = ["2026-01-31T12:00:00Z", "2026-01-31T12:30:00Z"];
  expect(found(undefined, undefined)).toEqual(["skip", "no node agent reports probes through VXLAN"]);
  expect(found(verified(undefined), verified(undefined))).toEqual(["skip", "no node agent has verified it yet"]);
  expect(found(verified(late), verified(early))).toEqual([
    "ok",
    `verified by probes of worker-1, worker-2 since ${late}`,
  ]);
  expect(found(lost, lost)).toEqual(["warn", `packets are lost from node ${lost.losses[0]}`]);
});

it("gives its fixes in the words of the cluster, the public system's too", () => {
  const dataplaneConfiguration = object(calicoNames.kinds.dataplaneConfiguration.kind, "default", {
    spec: { bpfEnabled: true },
  });
  const service = { ...running(), dataplaneConfiguration };
  const seen = observed({ names: calicoNames, kind: { detected: "aks" }, service });
  const found = runChecks(seen, "running").find(({ code }) => code === "SERVICE_PROXY_CONFLICT");
  const { plural } = calicoNames.kinds.dataplaneConfiguration;
  const patch = `{"spec":{"${calicoNames.fields.iptablesCleanup.replace("spec.", "")}":false}}`;
  expect(found?.fix).toBe(
    `kubectl patch ${plural}.${calicoNames.groups.stored.group} default --type merge -p '${patch}'`,
  );
});

it("a proxy that no daemon set runs is known by the agents it fights with", () => {
  const conflict = "kube-proxy wrote its rules again";
  const agents = [agent({ node: "n1" }, { proxyRules: { conflict } })];
  const dataplaneConfiguration = object("DataplaneConfiguration", "default", { spec: { bpfEnabled: true } });
  const service = { ...running(), dataplaneConfiguration, agents } as ReturnType<typeof running>;
  const seen = observed({ proxy: { daemonSet: undefined }, service });
  const found = runChecks(seen, "running").find(({ code }) => code === "SERVICE_PROXY_CONFLICT");
  expect(found).toMatchObject({ status: "fail", evidence: [`node n1: conflict: ${conflict}`] });
});

it("names ten of a thousand nodes, and says how many more there are", () => {
  const nodes = Array.from({ length: 1000 }, (_, index) => node(`n${index}`, { architecture: "riscv64" }));
  const found = runChecks(observed({ nodes }), "install").find(({ code }) => code === "EBPF_ARCHITECTURE");
  expect(found?.evidence).toHaveLength(11);
  expect(found?.evidence.at(-1)).toBe("and 990 more");
});

describe("a lock of the datastore is named with whose it is, and how it ends", () => {
  type Locked = Extract<Observation["lock"], { state: "locked" }>;
  const run = (outcome: RunOutcome): Locked["run"] => ({
    ...{ id: "m-1", title: "Migrate vendor-etcd.yaml", outcome, startedAt: "2025-12-31T23:00:00Z", at: "import" },
  });
  const found = (lock: Partial<Locked>, differently: Differently = {}) => {
    const { state, where = "etcd", writer, moved = false, ...rest } = { state: "locked" as const, ...lock };
    const whole: Locked = { ...{ state, where, writer, moved }, run: rest.run };
    const seen = observed({ service: running(), lock: whole, ...differently });
    return runChecks(seen, "running", { now: NOW }).find(({ code }) => code === "DATASTORE_IS_LOCKED")!;
  };

  it.each<[string, Partial<Locked>, string, RegExp]>([
    [
      "a run that stopped",
      { run: run("stopped") },
      'stopped at step "import"',
      /^vendorctl resume,.*vendorctl rollback$/,
    ],
    ["a run that was killed", { run: run("running") }, 'running at step "import"', /^vendorctl resume/],
    ["a run that was given up", { run: run("aborted") }, "by run m-1", /^vendorctl rollback --run m-1$/],
    ["a journal that may not be read", { run: "unread" }, "you may not list Secrets", /^vendorctl history$/],
    ["a person, in etcd", {}, "no migration of vendorctl holds", /"datastoreReady":true}}' --datastore etcd/],
    ["an old manifest, applied again", { moved: true }, "was moved to the Kubernetes", /kubectl apply .*vendor.yaml$/],
  ])("%s", (_whose, lock, evidence, fix) => {
    expect(found(lock)).toMatchObject({
      status: "fail",
      evidence: [expect.stringContaining(evidence)],
      fix: expect.stringMatching(fix),
    });
  });

  it("is waited for while the migration's process works", () => {
    const holder = { holder: "laptop/1234", renewed: "2025-12-31T23:59:55Z", seconds: 15 };
    expect(found({ run: run("running") }, { run: holder })).toMatchObject({ status: "warn", fix: "vendorctl history" });
  });

  it("is lifted with the public tool on the public system", () => {
    expect(found({ where: "the Kubernetes API" }, { names: calicoNames }).fix).toContain(
      "calicoctl datastore migrate unlock",
    );
  });

  it("is not claimed of an etcd that could not be asked", () => {
    const lock = { state: "unknown", why: "etcd does not answer at https://10.0.0.1:2379" } as const;
    const results = runChecks(observed({ service: running(), lock }), "running", { now: NOW });
    expect(results.find(({ code }) => code === "DATASTORE_IS_LOCKED")).toMatchObject({
      status: "skip",
      evidence: [lock.why],
    });
  });
});
