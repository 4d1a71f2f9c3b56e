import { mkdirSync, writeFileSync } from "node:fs";
import { afterAll, describe, expect, it, vi } from "vitest";
import { rolloutProgress } from "../../src/api/protocol/rollout.ts";
import type { Workload } from "../../src/api/workload-objects.ts";
import { createClient } from "../../src/cluster/client.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { DAEMON_SETS } from "../../src/cluster/kinds.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import * as clusterCommands from "../../src/local/commands.ts";
import { GoldenFolder, shownAt } from "../support/golden.ts";
import { type Case, describeCases, GoldenSession } from "./golden-session.ts";

/**
 * What every command prints on an embedded cluster, from an empty one to an uninstalled service: at 80 and at 160 columns, and in a pipe.
 * A run is run once and printed three times. What needs no cluster is in src/cli/golden.test.ts, upgrades are in golden-upgrade.test.ts.
 */

vi.mock("../../src/procedures/run/engine.ts", async (original) =>
  (await import("../support/shared-runs.ts")).shareRuns(await original()),
);
vi.mock("../../src/procedures/observe.ts", async (original) =>
  (await import("../support/shared-runs.ts")).shareObservations(await original()),
);
vi.mock("../../src/procedures/preview-plan.ts", async (original) =>
  (await import("../support/shared-runs.ts")).sharePreviews(await original()),
);
vi.mock("../../src/procedures/upgrade/gather-upgrade.ts", async (original) =>
  (await import("../support/shared-runs.ts")).shareUpgrades(await original()),
);

const golden = new GoldenFolder(new URL("golden/cluster/", import.meta.url));

/** Starts the cluster once, whatever the number of views that print how; it ends with the tests. */
const end = new AbortController();
let started: Promise<{ reports: Report[]; up: Awaited<ReturnType<typeof clusterCommands.up>> }> | undefined;
type Report = Parameters<Parameters<typeof clusterCommands.up>[1]["report"]>[0];

const commands: typeof clusterCommands = {
  ...clusterCommands,
  async up(options, { report }) {
    started ??= (async () => {
      const reports: Report[] = [];
      const up = await clusterCommands.up(options, { signal: end.signal, report: (event) => reports.push(event) });
      return { reports, up };
    })();
    const { reports, up } = await started;
    reports.forEach(report);
    // As when Ctrl-C is pressed at once; the cluster itself goes on.
    return { cluster: up.cluster, stopped: Promise.resolve() };
  },
};

const session = new GoldenSession({ loadClusterCommands: async () => commands });

/** What a cluster leaves whose process was killed. */
async function killedCluster(): Promise<void> {
  const record = { name: "ci", kind: "eks", nodes: 3, pid: 1, processStart: "before", server: SERVER, ready: true };
  mkdirSync(`${session.home}/clusters/ci`, { recursive: true });
  writeFileSync(`${session.home}/clusters/ci/cluster.json`, JSON.stringify(record));
}
const SERVER = "https://127.0.0.1:6443";

const POLICY = `
apiVersion: vendor.io/v3
kind: GlobalNetworkPolicy
metadata: { name: deny-metadata, labels: { team: platform } }
spec:
  order: 100
  selector: all()
  types: [Egress]
  egress: [{ action: Deny, destination: { nets: [169.254.169.254/32] } }, { action: Allow }]
`;
const WRONG = POLICY.replace("Deny,", "Reject,").replace("100", "first");

const PATIENCE_MS = 60_000;
const vendorctl = async (...argv: string[]) => {
  await shownAt("piped", argv);
};
const apply = () => vendorctl("apply", "-f", `${session.home}/policy.yaml`);
const removed = () => vendorctl("delete", "globalnetworkpolicy", "deny-metadata", "--ignore-not-found");

const completed = async (...line: string[]) => (await shownAt("piped", ["complete", "--", ...line])).text;
let namesOffered = "";
const askForNames = () =>
  vi.waitFor(async () => {
    namesOffered = await completed("patch", "globalnetworkpolicies", "deny");
    if (!namesOffered.includes("deny-metadata")) throw new Error(`no name is offered: ${namesOffered}`);
  }, PATIENCE_MS);

/** The step that was done before the run was aborted restarts the agents, and a switch starts only when they are ready. */
async function agentsHaveAddress(): Promise<void> {
  const transport = httpsTransport(loadConnection({ kubeconfig: `${session.home}/clusters/demo/kubeconfig` }));
  const client = createClient(transport, { userAgent: "golden" });
  try {
    await vi.waitFor(async () => {
      const agents = await client.get<Workload>(DAEMON_SETS, { namespace: "vendor-system", name: "vendor-node" });
      expect(JSON.stringify(agents.spec)).toContain("ORCHESTRATOR_SERVICE_HOST");
      expect(rolloutProgress(agents)).toBeUndefined();
    }, PATIENCE_MS);
  } finally {
    transport.close();
  }
}

const CASES: Case[] = [
  {
    line: "cluster up --runtime simulated --nodes 2",
    before: async () => session.useKubeconfig(`${session.home}/clusters/demo/kubeconfig`),
  },
  { line: "cluster list", before: killedCluster },
  { line: "cluster kubeconfig" },
  { line: "cluster kubeconfig --name nothing" },
  { line: "cluster logs --tail 1" },
  { line: "cluster down --name ci", beforeEach: killedCluster },
  { line: "cluster down --name nothing" },

  { line: "check", name: "check-not-installed" },
  { line: "status", name: "status-not-installed" },
  { line: "version", name: "version-not-installed" },
  { line: "history", name: "history-empty" },
  { line: "check --pre" },
  { line: "check --pre -v 1" },
  { line: "proxy status", name: "proxy-status-not-installed" },
  { line: "plan install" },
  { line: "diff install" },
  { line: "plan install --dataplane standard --set spec.vendorNetwork.mtu=1400" },
  { line: "switch --to bpf", name: "switch-not-installed" },
  { line: "upgrade --dry-run", name: "upgrade-not-installed" },
  { line: "resume", name: "resume-nothing" },
  { line: "get ippools", name: "get-not-installed" },
  { line: "install", name: "install-not-confirmed" },
  { line: "install -y", runs: true },

  { line: "check" },
  { line: "check -o short" },
  { line: "status" },
  { line: "version" },
  { line: "proxy status" },
  { line: "node nothing bgp" },
  { line: "node demo-worker-1 bgp" },
  { line: "plan install", name: "plan-install-again" },
  { line: "plan switch --to ebpf", name: "plan-switch-already" },
  { line: "upgrade --dry-run", name: "upgrade-already" },
  { line: "proxy disable --dry-run", name: "proxy-disable-already" },
  { line: "proxy restore --dry-run", name: "proxy-restore-refused" },
  { line: "proxy restore --force --dry-run" },

  { line: "switch --to standard -y", name: "switch-interrupted", runs: { interruptAfter: 1 } },
  { line: "switch --to standard -y", name: "switch-refused-unfinished" },
  { line: "history", name: "history-stopped" },
  { line: "resume --dry-run" },
  { line: "abort --dry-run" },
  { line: "resume -y", runs: true },
  { line: "proxy status", name: "proxy-status-standard" },
  { line: "check --for switch" },
  { line: "plan switch --to bpf" },
  { line: "diff switch --to bpf" },
  { line: "proxy disable -y", name: "proxy-disable-refused" },
  { line: "proxy restore --dry-run", name: "proxy-restore-already" },
  { line: "switch --to bpf -y", name: "switch-to-be-rolled-back", runs: { interruptAfter: 1 } },
  { line: "rollback -y", runs: true },
  { line: "switch --to bpf -y", name: "switch-to-be-aborted", runs: { interruptAfter: 1 } },
  { line: "abort -y", runs: true },
  { line: "switch --to bpf -y", runs: true, before: agentsHaveAddress },
  { line: "history" },
  { line: "rollback --dry-run" },
  { line: "rollback", name: "rollback-not-confirmed" },
  { line: "rollback --to-step 99" },
  { line: "history nothing" },

  { line: "apply -f HOME/policy.yaml --dry-run=server", before: async () => void session.file("policy.yaml", POLICY) },
  { line: "apply -f HOME/policy.yaml", beforeEach: removed },
  { line: "apply -f HOME/policy.yaml", name: "apply-unchanged" },
  { line: "apply -f HOME/wrong.yaml", before: async () => void session.file("wrong.yaml", WRONG) },
  { line: "apply -f HOME/nothing.yaml" },
  { line: "get globalnetworkpolicies", before: askForNames },
  { line: "get globalnetworkpolicies -o wide" },
  { line: "get globalnetworkpolicies -o name" },
  { line: "get globalnetworkpolicy deny-metadata nothing" },
  { line: "get tiers,globalnetworkpolicies" },
  { line: "get networkpolicies -n default" },
  { line: "get policies" },
  {
    line: "label globalnetworkpolicy deny-metadata owner=net",
    beforeEach: () => vendorctl("label", "globalnetworkpolicy", "deny-metadata", "owner-"),
  },
  { line: "label globalnetworkpolicy deny-metadata team=web" },
  { line: `patch globalnetworkpolicy deny-metadata -p '{"spec":{"order":200}}'`, beforeEach: apply },
  { line: `patch globalnetworkpolicy deny-metadata -p '{"spec":{"order":"first"}}'` },
  { line: "delete globalnetworkpolicy deny-metadata", beforeEach: apply },
  { line: "delete globalnetworkpolicy deny-metadata", name: "delete-not-found" },
  { line: "delete globalnetworkpolicy" },

  { line: "flows disable --dry-run", name: "flows-disable-nothing" },
  { line: "flows top --by from", name: "flows-top-nothing" },
  { line: "flows explain 8ffb9dda64a12c2e6f5bb0c1", name: "flows-explain-nothing" },
  { line: "flows propose", name: "flows-propose-nothing" },
  { line: "ui", name: "ui-nothing" },
  { line: "flows preview --delete networkpolicy/lock", name: "flows-preview-nothing" },
  { line: "flows enable -y", runs: true },
  { line: "flows disable --dry-run" },
  { line: "status --as nobody", name: "status-forbidden" },
  { line: "auth can-i switch --to standard" },
  { line: "auth can-i --list" },
  { line: "auth can-i --list --as nobody uninstall", name: "auth-can-i-forbidden" },
  { line: "auth can-i --list -o yaml proxy restore --force" },
  { line: "uninstall --dry-run" },
  { line: "uninstall -y", runs: true },
  { line: "status", name: "status-uninstalled" },
];

describeCases(golden, session, CASES);

describe("a shell completes what is in the cluster", () => {
  // A completion that takes too long is none, so on a busy machine it is asked for again.
  it.each<[line: string[], found: RegExp]>([
    [["switch", "--canary", ""], /^demo-control-plane\ndemo-worker-1$/m],
    [["get", "networkpolicies", "-n", "kube-s"], /^kube-system$/m],
    [["--context", ""], /^vendor\S*demo$/m],
    [["history", "inst"], /^install-[0-9a-f]{8}-\w{8}$/m],
    [["rollback", "--run", "switch-"], /^switch-[0-9a-f]{8}-\w{8}$/m],
  ])("vendorctl %j", async (line, found) => {
    await expect.poll(() => completed(...line)).toMatch(found);
  });

  it("names of resources, while the service is installed", () => {
    expect(namesOffered).toMatch(/^deny-metadata$/m);
  });
});

afterAll(async () => {
  end.abort();
  await (await started)?.up.stopped;
  session.close();
});
