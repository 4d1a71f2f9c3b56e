/**
 * Every long run: the tests of `npm test` with more repetitions, more connections or every case, and tests that take too long for
 * it. `minutes` is a rough guess for two cores; `--list` prints what the last green run took instead, when there was one.
 */
export const LONG_RUNS = [
  {
    name: "switchover",
    proves: "ten switchovers each way lose none of 1,000 connections; an agent killed at any step goes on",
    files: ["test/switchover/switch", "test/switchover/safety", "test/switchover/breadth"],
    env: { HANDOVER: "full" },
    minutes: 45,
  },
  {
    name: "load",
    proves: "2,000 new connections a second lose none while agents die, are upgraded, and backends come and go",
    files: ["test/switchover/load"],
    env: { SERVICE_LOAD: "full" },
    minutes: 25,
  },
  {
    name: "switch",
    proves:
      "vendorctl switch, upgrade and migrate operator, datastore and encapsulation under measured traffic: refused by a kernel, killed while measuring, carried through",
    files: [
      "test/netns/switch-refused",
      "test/netns/switch-rollback",
      "test/netns/upgrade-under-traffic",
      "test/netns/migrate-operator",
      "test/netns/migrate-datastore",
      "test/netns/migrate-encapsulation",
      "test/netns/routed-migration",
    ],
    env: { NETNS_SWITCH: "full" },
    minutes: 10,
  },
  {
    name: "manifest-upgrade",
    proves:
      "each plain manifest of v3.27 is upgraded under traffic and taken back, by kubectl apply and by vendorctl, and no connection is lost",
    files: ["test/netns/manifest-upgrade"],
    env: { MANIFEST_UPGRADE: "full" },
    minutes: 5,
  },
  {
    name: "bgp",
    proves: "BIRD accepts 5,000 random configurations and announces what the objects mean; beside FRR nothing is lost",
    files: ["test/agent/bgp"],
    env: { BGP_WORLDS: "5000" },
    minutes: 4,
  },
  {
    name: "containers",
    proves:
      "the published image and manifests in containers of containerd: both data planes with the rights they ask for",
    files: ["test/local/containerd"],
    env: { CONTAINERS: "full" },
    minutes: 6,
  },
  {
    name: "outage",
    proves:
      "an API server that is silent for 10 s to 5 min, expires watches or is slow in the middle of a switch: nothing is lost, the run succeeds",
    files: ["test/netns/switch-outage"],
    env: { API_OUTAGE: "full" },
    minutes: 30,
  },
  {
    name: "earlier-programs",
    proves:
      "programs of an earlier commit (EARLIER=COMMIT) are upgraded to this one under traffic, and its unfinished runs are ended",
    files: ["test/upgrade/earlier-programs"],
    env: { EARLIER_PROGRAMS: "full" },
    minutes: 10,
  },
  {
    name: "proxy",
    proves: "kube-proxy that runs on beside eBPF, or that an add-on manager keeps, is reported and does no harm",
    files: ["test/netns/proxy-conflict", "test/netns/proxy-aks"],
    env: { NETNS_PROXY: "full" },
    minutes: 10,
  },
  {
    name: "matrix",
    proves: "every path works with both data planes, every encapsulation, and IPv4, IPv6 and both",
    files: ["test/netns/matrix", "test/netns/cross-subnet", "test/netns/routed-subnets"],
    env: { NETNS_MATRIX: "full" },
    minutes: 15,
  },
  {
    name: "network-policy",
    proves: "every public NetworkPolicy case holds with real sockets on both data planes",
    files: ["test/netns/network-policy"],
    env: { NETNS_POLICY: "full" },
    minutes: 20,
  },
  {
    name: "churn",
    proves: "2,000 pods come and go while agents are killed; no address, interface or map entry is left over",
    files: ["test/netns/churn"],
    env: { NETNS_CHURN: "full" },
    minutes: 60,
  },
  {
    name: "eight-steps",
    proves:
      "the installation procedure, typed with kubectl and the published files, reaches Available on every kind of cluster with real nodes, and carries packets",
    files: ["test/netns/eight-steps"],
    env: { EIGHT_STEPS: "full" },
    minutes: 10,
  },
  {
    name: "uninstall",
    proves:
      "uninstall leaves nothing on real nodes with pods, in either data plane, and installing again assigns no address twice",
    files: ["test/netns/uninstall"],
    env: { NETNS_UNINSTALL: "full" },
    minutes: 10,
  },
  {
    name: "direct",
    proves: "answers to clients outside leave by the right node, with ten times the connections of npm test",
    files: ["test/netns/service-direct"],
    env: { DIRECT: "full" },
    minutes: 5,
  },
  {
    name: "full-tables",
    proves: "a table of a million conntrack entries that is full makes room for a new one",
    files: ["test/ebpf/full-tables"],
    env: { FULL_TABLES: "full" },
    minutes: 10,
  },
  {
    name: "flood",
    proves: "600,000 connections opened by one pod cost no other pod a connection, on both data planes",
    files: ["test/attacks/flood", "test/attacks/flood-entries"],
    env: { FLOOD: "full" },
    minutes: 10,
  },
  {
    name: "agent-kills",
    proves: "an agent killed 50 times while policies are swapped never lets denied traffic pass",
    files: ["test/agent/lifecycle"],
    env: { AGENT_KILLS: "50" },
    minutes: 15,
  },
  {
    name: "agent-churn",
    proves:
      "30 minutes of changes to 500 pods and 1,000 policies, agents killed: their memory, descriptors and kernel objects stay flat",
    files: ["test/agent/agent-churn"],
    env: { AGENT_CHURN: "full" },
    minutes: 45,
  },
  {
    name: "ipam",
    proves: "500 random histories of allocations and crashes give no address to two pods and leak none",
    files: ["test/agent/ipam"],
    env: { IPAM_RUNS: "500" },
    minutes: 10,
  },
  {
    name: "random-policy",
    proves: "policy calculation agrees with a plain reference on 50,000 random clusters",
    files: ["test/calc/differential"],
    env: { POLICY_WORLDS: "50000" },
    minutes: 10,
  },
  {
    name: "random-nft",
    proves:
      "rendered nftables rules agree with a plain reference on 50,000 random clusters, and 1,000 with real packets",
    files: ["test/nft/differential", "test/nft/random-packets"],
    env: { NFT_WORLDS: "50000", NFT_LIVE_WORLDS: "1000" },
    minutes: 40,
  },
  {
    name: "random-ebpf",
    proves: "eBPF programs agree with a plain reference on a million verdicts, and survive a million random frames",
    files: ["test/ebpf/differential", "test/ebpf/fuzz", "test/ebpf/flow-traces"],
    env: { EBPF_TRIPLES: "1000000", EBPF_FRAMES: "1000000", FLOW_PAIRS: "100000" },
    minutes: 20,
  },
  {
    name: "flow-queries",
    proves:
      "100,000 random queries end in an answer or one error; an hour of 20,000 flows takes less than 40 bytes a row; 500 random overloads stay exact",
    files: ["src/flows/query/any-query", "src/flows/store/flow-store", "src/flows/store/overload"],
    env: { FLOW_QUERIES: "100000", FLOW_KEYS: "20000", FLOW_OVERLOADS: "500" },
    minutes: 5,
  },
  {
    name: "flow-kills",
    proves:
      "flow logs of real nodes say what was sent, to the packet, while agents and vendor-flow-logs are killed 20 times",
    files: ["test/netns/flow-logs"],
    env: { FLOW_KILLS: "20" },
    minutes: 8,
  },
  {
    name: "fuzz",
    proves: "every listener and parser survives a million hostile inputs in all: no process ends, memory stays flat",
    files: ["test/attacks/fuzz-parsers", "test/attacks/fuzz-listeners"],
    env: { FUZZ_INPUTS: "1000000" },
    minutes: 60,
  },
  {
    name: "frames",
    proves: "100,000 mutated frames of a hostile pod per data plane: nothing that policy denies is heard anywhere",
    files: ["test/attacks/frames"],
    env: { FRAMES_MUTATED: "100000" },
    minutes: 10,
  },
  {
    name: "operator-faults",
    proves: "an operator killed after each single write of an installation ends in the same state",
    files: ["src/operator/faults", "test/operator/faults"],
    env: { FAULTS: "all", OPERATOR_FAULTS: "full" },
    minutes: 6,
  },
  {
    name: "upgrade-matrix",
    proves: "every older version upgrades by every install method, keeps what people edited, and rolls back exactly",
    files: ["test/procedures/upgrade-matrix"],
    env: { UPGRADE_MATRIX: "full" },
    minutes: 5,
  },
  {
    name: "owner-references",
    proves: "an upgrade across v3.28 loses none of 10,000 objects that are owned by resources whose UID changes",
    files: ["test/procedures/owner-references"],
    env: { OWNED_OBJECTS: "full" },
    minutes: 4,
  },
  {
    name: "kubectl",
    proves: "every kubectl the machine has, not only the newest, drives the embedded cluster",
    files: ["test/kubectl/scenario"],
    env: { KUBECTL_VERSIONS: "all" },
    minutes: 3,
  },
  {
    name: "kernels",
    proves: "both data planes run on kernels 5.10, 6.1 and 6.12, in emulated machines",
    tool: ["tools/test-kernels.mjs"],
    minutes: 15,
  },
  {
    name: "sweep",
    proves: "one vendorctl run killed at each of its writes in turn ends as an undisturbed one, for every procedure",
    tool: ["tools/sweep.mjs", "--relentless"],
    minutes: 60,
  },
  {
    name: "sweep-each",
    proves: "vendorctl killed at any single write of any procedure resumes to the end, or rolls back to the beginning",
    tool: ["tools/sweep.mjs"],
    minutes: 360,
  },
];

const COUNTS = /(\d+) (?:ok|passed), (\d+) failed, (\d+) skipped/;

/**
 * What a long run came to, from its last lines. Green means that something ran, nothing failed and nothing was skipped: a run
 * without root, or without the kernels, proves nothing.
 * @returns {{ green: true } | { green: false, why: string }}
 */
export function verdictOf(status, text) {
  const counts = COUNTS.exec(text.split("\n").findLast((line) => COUNTS.test(line)) ?? "");
  if (!counts) return { green: false, why: `it ended with ${status} and counted nothing` };
  const [passed, failed, skipped] = counts.slice(1).map(Number);
  if (failed > 0 || status !== 0) return { green: false, why: `${failed} failed` };
  if (skipped > 0) return { green: false, why: `${skipped} skipped` };
  return passed > 0 ? { green: true } : { green: false, why: "nothing ran" };
}

/** @param {Record<string, { date: string, commit: string, seconds: number }>} records */
export function listLines(records, runs = LONG_RUNS) {
  const rows = runs.map(({ name, minutes, proves }) => {
    const last = records[name];
    const about = last ? Math.ceil(last.seconds / 60) : minutes;
    return [name, `${about} min`, last ? `${last.date} ${last.commit}` : "never recorded", proves];
  });
  const table = [["NAME", "ABOUT", "LAST GREEN RUN", "PROVES"], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column].length)));
  return table.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("   "));
}
