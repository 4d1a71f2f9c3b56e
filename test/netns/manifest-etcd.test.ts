import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VERSION } from "../../src/api/tables/release.ts";
import { CRDS } from "../../src/cluster/kinds.ts";
import { OUTSIDE } from "../../src/local/runtime/netns/places.ts";
import { filledIn } from "../support/etcd-cluster.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";
import { findKubectls, type Kubectl, openKubectl } from "../support/kubectl.ts";
import { manifest } from "../support/operator-manifests.ts";
import { ALL_PATHS, closeByNetworkPolicy, type Paths, pathsOf, untilAllRun, untilWorking } from "./manifest-lab.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";

const program = findKubectls().at(-1);
const why = whyNoRealNodes ?? (program ? (hasEtcd() ? undefined : NO_ETCD) : "needs kubectl");
const run = promisify(execFile);
const ADDRESS = "203.0.113.2";
const POLICY = `
apiVersion: vendor.io/v3
kind: GlobalNetworkPolicy
metadata: { name: no-outside }
spec:
  selector: app == 'client'
  types: [Egress]
  egress:
    - { action: Deny, destination: { nets: [${ADDRESS}/32] } }
    - { action: Allow }
`;
const WITHOUT_OUTSIDE = ALL_PATHS.filter((path) => path !== "outside");
const FILES = [
  ["vendor-etcd.yaml", "vendor-node"],
  ["vendor-overlay-etcd.yaml", "vendor-overlay"],
] as const;

describe.skipIf(why).each(FILES)(`%s applied by kubectl, with a real etcd${why ? ` (${why})` : ""}`, (file, agents) => {
  let cluster: RealCluster;
  let etcd: EtcdServer;
  let kubectl: Kubectl;
  let paths: Paths;
  let here: string[];
  const folder = mkdtempSync(join(tmpdir(), "manifest-etcd-"));
  const outside = () => `v-${cluster.name}.${OUTSIDE}`;
  const written = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const vendorctl = (...args: string[]) => run(process.execPath, [resolve("bin/vendorctl"), ...args]);
  /** From where etcd is. */
  const onEtcd = (...args: string[]) =>
    run(
      "nsenter",
      [`--net=/run/netns/${outside()}`, process.execPath, resolve("bin/vendorctl"), ...args, ...etcd.flags],
      { env: { ...process.env, ...etcd.env } },
    );
  beforeAll(async () => {
    cluster = await startReal({ nodes: 2 });
    etcd = await startEtcd({ tls: true, users: true, within: { netns: outside(), address: ADDRESS } });
    kubectl = openKubectl(program!, cluster.kubeconfig);
    here = ["--kubeconfig", written("kubeconfig", cluster.kubeconfig)];
    await kubectl.ok("apply", "--server-side", "-f", written(file, filledIn(manifest(file), etcd)));
  });
  afterAll(async () => {
    paths?.close();
    kubectl?.close();
    await cluster?.close();
    await etcd?.stop();
    rmSync(folder, { recursive: true });
  });

  it("runs every pod, the node pods with READY 1/2, and has no CRD of the service", async () => {
    const controllers = "vendor-kube-controllers 1/1 Running";
    const node = `${agents} 1/2 Running`;
    expect(await untilAllRun(kubectl, cluster, agents, VERSION, 1)).toEqual(
      [controllers, controllers, node, node].sort(),
    );
    expect((await cluster.client.list(CRDS)).items).toEqual([]);
    const { stdout } = await vendorctl("status", ...here);
    expect(stdout).toContain("data plane standard, etcd datastore");
    expect(stdout).toMatch(/ok node agents +2 of 2 nodes; READY 1\/2 is expected: the etcd datastore cannot watch/);
  });

  it("refuses eBPF with the reason, and says where resources are", async () => {
    const refusal = (...args: string[]) => vendorctl(...args, ...here).then(undefined, ({ stderr }) => stderr);
    expect(await refusal("switch", "--to", "bpf", "--yes")).toMatch(/etcd datastore.*\[EBPF_NEEDS_KUBE_DATASTORE\]/);
    expect(await refusal("get", "ippools")).toMatch(/in etcd, at https:\S+ \[RESOURCES_IN_ETCD\]/);
  });

  it("carries packets on a node, between nodes, to a Service and to the outside", async () => {
    paths = await pathsOf(cluster);
    await untilWorking(paths, ALL_PATHS);
  });

  it("enforces NetworkPolicy, and policies that vendorctl writes to etcd", async () => {
    const open = await closeByNetworkPolicy(cluster);
    await untilWorking(paths, ["outside"]);
    await open();
    await untilWorking(paths, ALL_PATHS);
    await onEtcd("apply", "-f", written("policy.yaml", POLICY));
    await untilWorking(paths, WITHOUT_OUTSIDE);
  });

  it("keeps policy while etcd is away, and follows it when it is back", async () => {
    await etcd.members[0]!.kill();
    expect(await paths.working()).toEqual(WITHOUT_OUTSIDE);
    await etcd.members[0]!.start();
    await onEtcd("delete", "-f", join(folder, "policy.yaml"));
    await untilWorking(paths, ALL_PATHS);
  });
});
