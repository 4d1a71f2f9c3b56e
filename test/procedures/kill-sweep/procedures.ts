import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { vendorNames } from "../../../src/api/names.ts";
import { DEPLOYMENTS, NAMESPACES, NETWORK_POLICIES } from "../../../src/cluster/kinds.ts";
import type { ClusterOptions, LocalCluster } from "../../../src/local/cluster.ts";
import {
  applyCalicoEtcd,
  COPIED_POLICY,
  calicoEtcd,
  playCalicoControllers,
  seedCalicoEtcd,
  writeCalicoEtcdRelease,
} from "../../support/calico-etcd.ts";
import { applyCalicoManifest, CALICO_VERSION, writeCalicoRelease } from "../../support/calico-manifest.ts";
import { startMigratingOperator } from "../../support/calico-operator.ts";
import { applyEtcdManifest, etcdData, seedEtcd } from "../../support/etcd-cluster.ts";
import { startEtcd } from "../../support/etcd-server.ts";
import { applyManifest, editManifest } from "../../support/manifest-cluster.ts";
import { meshWorkload } from "../../support/mesh-workload.ts";

/** A procedure that is killed again and again. */
export interface SweptProcedure {
  name: string;
  /** Swept in every test run, at a few calls; the others in the long run. One of each kind: objects made, changed live, removed. */
  always?: true;
  cluster: Omit<ClusterOptions, "name">;
  /** What must have happened before; the state after it is the initial one. Each is a command line of vendorctl, `-y` included by itself. */
  before?: readonly (readonly string[])[];
  /** What people had in the cluster. */
  seed?(cluster: LocalCluster): Promise<void>;
  /** A folder of programs of others, which vendorctl finds on its PATH. */
  programs?(cluster: LocalCluster): Promise<SweptPrograms>;
  /** The command line, without `-y` and the kubeconfig. */
  argv: readonly string[];
}

export interface SweptPrograms {
  folder: string;
  /** What they keep outside the cluster, which a procedure changes too. */
  state?(): Promise<ReadonlyMap<string, unknown>>;
  close(): Promise<void>;
}

const SIMULATED = { kind: "generic", nodes: 2 };

const IN_IPIP = ["cidr=10.244.0.0/16", "encapsulation=IPIP"].flatMap((text) => [
  "--set",
  `spec.vendorNetwork.ipPools[0].${text}`,
]);
/** Named in a command line before it is written. */
const CALICO_FOLDER = join(tmpdir(), `kill-sweep-${process.pid}`);
const CALICO_RELEASE = { folder: CALICO_FOLDER, url: pathToFileURL(join(CALICO_FOLDER, CALICO_VERSION)).href };
const BY_HAND = ["--set", "spec.vendorNetwork.serviceProxyManagement=Disabled"];

/** One row per procedure of the product; upgrades have a list of their own. A new procedure adds its row here and is swept. */
export const SWEPT: readonly SweptProcedure[] = [
  { name: "install", always: true, cluster: SIMULATED, argv: ["install"] },
  {
    name: "switch to eBPF",
    cluster: SIMULATED,
    before: [["install", "--dataplane", "standard"]],
    argv: ["switch", "--to", "BPF"],
  },
  {
    name: "switch to standard",
    always: true,
    cluster: SIMULATED,
    before: [["install"]],
    argv: ["switch", "--to", "standard"],
  },
  {
    name: "install where an address, a name server and a path are written",
    cluster: { kind: "eks", nodes: 2 },
    argv: ["install", "--flow-logs"],
  },
  {
    name: "switch from IPVS, with the proxy in a person's hands",
    cluster: { kind: "eks", nodes: 2, proxy: "ipvs" },
    before: [["install", "--dataplane", "standard"]],
    argv: ["switch", "--to", "BPF"],
  },
  {
    name: "switch to standard, with the proxy in a person's hands",
    cluster: SIMULATED,
    before: [["install", ...BY_HAND]],
    argv: ["switch", "--to", "standard"],
  },
  {
    name: "proxy disable",
    cluster: SIMULATED,
    before: [
      ["install", ...BY_HAND],
      ["proxy", "restore", "--leave-rules"],
    ],
    argv: ["proxy", "disable"],
  },
  { name: "uninstall", cluster: SIMULATED, before: [["install"]], argv: ["uninstall"] },
  {
    name: "migrate owner references, before an upgrade",
    cluster: { ...SIMULATED, installed: { version: "v3.27", method: "operator" } },
    seed: servesV3,
    argv: ["migrate", "owner-references", "--phase", "before"],
  },
  {
    name: "migrate host endpoints",
    cluster: SIMULATED,
    before: [["install"], ["apply", "-f", resolve("test/procedures/kill-sweep/host-endpoint.yaml")]],
    argv: ["migrate", "host-endpoints", "--accept-policies"],
  },
  {
    name: "migrate sidecars",
    cluster: { ...SIMULATED, cni: "preinstalled" },
    seed: hasMesh,
    argv: ["migrate", "sidecars", "--mesh-version", "1.15"],
  },
  {
    name: "migrate encapsulation",
    cluster: SIMULATED,
    before: [["install", "--dataplane", "standard", ...IN_IPIP]],
    argv: ["migrate", "encapsulation", "--to", "vxlan"],
  },
  {
    name: "migrate operator",
    cluster: SIMULATED,
    seed: hasEditedManifest,
    argv: ["migrate", "operator", "--accept-loss", "DaemonSet.metadata.labels.team"],
  },
  {
    name: "migrate datastore",
    cluster: SIMULATED,
    programs: hasEtcdManifest,
    argv: ["migrate", "datastore"],
  },
  {
    name: "migrate by the public operator",
    cluster: { ...SIMULATED, cni: "preinstalled" },
    programs: hasCalicoManifest,
    argv: ["--names", "calico", "migrate", "operator", "--manifest-url", CALICO_RELEASE.url],
  },
  {
    name: "migrate the public datastore",
    cluster: { ...SIMULATED, cni: "preinstalled" },
    programs: hasCalicoEtcd,
    argv: ["--names", "calico", "migrate", "datastore", "--manifest-url", CALICO_RELEASE.url],
  },
];

/** Its operator comes with the migration, and acts as soon as it may. */
async function hasCalicoManifest({ client }: LocalCluster): Promise<SweptPrograms> {
  writeCalicoRelease(CALICO_RELEASE.folder);
  await applyCalicoManifest(client, { typha: true });
  const operator = startMigratingOperator(client);
  return {
    folder: "/nowhere",
    async close() {
      await operator.stop();
      rmSync(CALICO_RELEASE.folder, { recursive: true, force: true });
    },
  };
}

async function hasCalicoEtcd({ client, nodeNames }: LocalCluster): Promise<SweptPrograms> {
  writeCalicoEtcdRelease(CALICO_RELEASE.folder);
  const server = await startEtcd({ tls: true });
  const data = calicoEtcd(server);
  await applyCalicoEtcd(client, server);
  await client.create(NETWORK_POLICIES, COPIED_POLICY);
  await seedCalicoEtcd(data, nodeNames);
  await playCalicoControllers(data, client);
  return {
    folder: "/nowhere",
    state: async () => new Map([...(await data.values())].filter(([key]) => !OF_PODS.test(key))),
    async close() {
      data.close();
      await server.stop();
      rmSync(CALICO_RELEASE.folder, { recursive: true, force: true });
    },
  };
}

/** etcd is one of the programs around the cluster; what is in it is compared too. */
async function hasEtcdManifest({ client, nodeNames }: LocalCluster): Promise<SweptPrograms> {
  const server = await startEtcd();
  const data = etcdData(server);
  await applyEtcdManifest(client, vendorNames.manifests.policyAndNetworkingEtcd, server);
  await seedEtcd(data.client, nodeNames);
  return {
    folder: "/nowhere",
    state: async () => new Map([...(await data.values())].filter(([key]) => !OF_CONTROLLERS.test(key))),
    async close() {
      data.close();
      await server.stop();
    },
  };
}

/** Endpoints of pods are made of the pods there are, whose names are others after a restart. */
const OF_PODS = /\/workloadendpoints\//;

/** The embedded cluster runs them on Kubernetes only: what they make there is carried back. */
const OF_CONTROLLERS = /\/(?:profiles|kubecontrollersconfigurations)\//;

async function hasEditedManifest({ client }: LocalCluster): Promise<void> {
  await applyManifest(client, vendorNames.manifests.policyAndNetworking);
  await editManifest(client, vendorNames.workloads.node);
}

/** What the v3 API makes when it comes up belongs to the initial state. */
async function servesV3({ client }: LocalCluster): Promise<void> {
  const { group } = vendorNames.groups.served;
  while (!(await client.resources()).some((one) => one.group === group)) {
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function hasMesh({ client }: LocalCluster): Promise<void> {
  for (const name of ["mesh-system", "shop"]) {
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  for (const name of ["cart", "web"]) await client.create(DEPLOYMENTS, meshWorkload(name, true));
}
