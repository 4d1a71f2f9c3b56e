/**
 * The projects of a test run, by what a test needs. Each test file belongs to one: `npm run verify` and a test hold it.
 * A folder is listed whole; a file is named where it needs more than its folder does.
 */
const ROOT = [
  "test/{attacks,ebpf,switchover,kernel,netns}/**/*.test.ts",
  "test/agent/{agent-churn,api-outage,bgp,bgp-probes,bgp-random,etcd-datastore,host-port,lifecycle,overlay-probe,portmap-rules,rolling-bgp,two-nodes}.test.ts",
  "test/attacks/health-ports.test.ts",
  "test/nft/{flow-accounting,keep-translations,kernel-accepts,lifecycle,live,overlay,random-packets}.test.ts",
  "test/procedures/switch-canary.test.ts",
  "test/{upgrade/earlier-programs,local/containerd}.test.ts",
  "tools/{kernels/this-kernel,test-run/fresh-machine}.test.mjs",
];

const CLUSTER = [
  "test/{apiserver,cli,contract,controllers,crash,datastore,docs,flows,kubectl,local,operator,procedures,ui,v3api}/**/*.test.ts",
  "src/operator/{faults,install,ip-pools,pre-delete,refusals,removal,switch}.test.ts",
  "src/{local/installed/seed-installed,procedures/run/cut}.test.ts",
  "tools/{containerfile,test-run/whole-run}.test.mjs",
  // Plain calculations, but on thousands of random inputs.
  "test/{agent/ipam,agent/addresses-in-use,attacks/fuzz-listeners,attacks/fuzz-parsers,nft/differential,nft/flow-texts,calc/determinism,calc/differential,sidecar/differential}.test.ts",
  "src/{apiserver/storage/store-model,procedures/merge/merge-manifest}.test.ts",
];

/** Of the cluster project, but with modules of ours replaced: what another file of the same process has imported stays as it was. */
const ISOLATED = ["test/cli/{golden,golden-upgrade}.test.ts"];

const MINUTES = 60_000;
/**
 * When a test counts as stuck. What it waits for has limits of its own, and they say what did not come; this one only ends what waits without
 * one, so it is far longer than a test takes on a machine that is busy with something else.
 */
const STUCK = 10 * MINUTES;

const UNIT = [
  "{src,ui}/**/*.test.ts",
  "test/{attacks,conformance,calc,fields,upgrade}/**/*.test.ts",
  "tools/**/*.test.mjs",
];

export const PROJECTS = [
  {
    name: "unit",
    /** Plain calculation and in-process servers: nothing started that takes seconds, no root. All of it within a minute on two cores. */
    include: UNIT,
    exclude: [...CLUSTER, ...ISOLATED, ...ROOT],
    /** Files share a process: most of what each would take is importing the same modules again. */
    isolate: false,
    testTimeout: MINUTES,
  },
  {
    name: "cluster",
    /** An embedded cluster with simulated nodes, vendorctl's procedures on it, kubectl, etcd, processes that are killed. */
    include: CLUSTER,
    exclude: [...ISOLATED, ...ROOT],
    /** As above. A file that changes the environment or the working directory of its process restores it. */
    isolate: false,
    testTimeout: STUCK,
  },
  {
    name: "isolated",
    /** As cluster, each file in a process of its own. */
    include: ISOLATED,
    exclude: [],
    isolate: true,
    testTimeout: STUCK,
  },
  {
    name: "root",
    /** The kernel: network namespaces, nftables, eBPF. Skipped without root. */
    include: ROOT,
    exclude: [],
    /** As above. */
    isolate: false,
    testTimeout: STUCK,
  },
];

/** Whether a path is one of a pattern's, for the patterns above: `**` for folders, `*` within a name, `{a,b}` for either. */
export function matches(glob, path) {
  const escaped = glob.replace(/[.+^$()|[\]\\]/g, "\\$&");
  const pattern = escaped
    .replace(/\{(.*?)\}/g, (_, list) => `(?:${list.replaceAll(",", "|")})`)
    .replace(/\*\*\/|\*/g, (stars) => (stars === "*" ? "[^/]*" : "(?:.*/)?"));
  return new RegExp(`^${pattern}$`).test(path);
}
