import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { v3Uid } from "../../api/resources/v3-uid.ts";
import { API_SERVICES, CONFIG_MAPS, CRDS, DAEMON_SETS, DEPLOYMENTS, NODES, SECRETS } from "../../cluster/kinds.ts";
import { oldDefinitions } from "../../releases/old-definitions.ts";
import type { DaemonSet, Node } from "../controllers/workload-types.ts";
import { platformProfile } from "../platform-profile.ts";
import { nodeObject } from "../runtime/node-object.ts";
import { type BareServer, bareServer } from "../testing/bare-server.ts";
import { INSTALL_METHODS, type InstallMethod, installMethod } from "./install-method.ts";
import { oldRelease } from "./old-release.ts";
import { type InstalledOptions, seedInstalled } from "./seed-installed.ts";

const METHODS = Object.keys(INSTALL_METHODS) as InstallMethod[];
const VERSIONS = ["v3.15", "v3.20.2", "v3.27", "v3.28.0", "v3.30"];
const STORED = vendorNames.groups.stored;
const SYSTEM = "kube-system";

const stored = (noun: keyof typeof vendorNames.kinds, namespaced = false) => ({
  ...STORED,
  kind: vendorNames.kinds[noun].kind,
  plural: vendorNames.kinds[noun].plural,
  namespaced,
});

describe("a cluster as an older version left it", () => {
  let server: BareServer;
  let nodes: string[];

  beforeEach(async () => {
    server = await bareServer("vendorctl");
    const options = { name: "old", nodes: 3, oldNodes: 0, windowsNodes: 1, dualStack: false, proxy: undefined };
    const generic = platformProfile("generic");
    const chosen = { ...options, apiAddress: { host: "127.0.0.1", port: 6443 } };
    for (const object of generic.objects(chosen))
      await server.client.create(await server.client.resourceFor(object), object);
    const specs = generic.nodes(chosen);
    for (const spec of specs) await server.client.create<Node>(NODES, nodeObject(spec, true, Date.now()));
    // The API server's own rule: a status is written through its subresource.
    for (const spec of specs) {
      const { status } = nodeObject(spec, true, Date.now());
      await server.client.patch(NODES, spec, { type: "merge", patch: { status } }, { subresource: "status" });
    }
    nodes = specs.map(({ name }) => name);
  });
  afterEach(() => server.close());

  const seed = (version: string, method: InstallMethod, more: Partial<InstalledOptions> = {}) =>
    seedInstalled(server.client, { version, method, kind: "generic", nodes, ...more });
  const list = async (kind: Parameters<typeof server.client.list>[0], namespace?: string) =>
    (await server.client.list<KubeObject>(kind, namespace ? { namespace } : {})).items;
  const names = (objects: KubeObject[]) => objects.map(({ metadata }) => metadata.name);
  const everything = async () => {
    const resources = (await server.client.resources()).filter(({ group }) => group !== "events.k8s.io");
    const all = await Promise.all(
      resources.filter(({ verbs }) => verbs.includes("list")).map((resource) => list(resource)),
    );
    return all
      .flat()
      .map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name} ${metadata.resourceVersion}`);
  };
  const agent = (name = "vendor-node", namespace = SYSTEM) =>
    server.client.get<DaemonSet>(DAEMON_SETS, { name, namespace });

  describe.each(METHODS)("installed by %s", (method) => {
    it.each(VERSIONS)("%s is accepted whole, and doing it twice changes nothing", async (version) => {
      await seed(version, method, { userEdits: true, cameFromBeforeV314: true });
      const before = await everything();
      await seed(version, method, { userEdits: true, cameFromBeforeV314: true });
      expect(await everything()).toEqual(before);
    });
  });

  it("completes a seeding that was cut short, without touching what was there", async () => {
    await seed("v3.27", "operator");
    await server.client.delete(CONFIG_MAPS, { name: "local-installed", namespace: SYSTEM });
    await server.client.delete(stored("ipPool"), { name: "default-ipv4-ippool" });
    const untouched = await agent("vendor-node", "vendor-system");
    await seed("v3.27", "operator");
    expect(names(await list(stored("ipPool")))).toEqual(["default-ipv4-ippool"]);
    expect(await agent("vendor-node", "vendor-system")).toEqual(untouched);
  });

  it("refuses to make a cluster of one old version into one of another", async () => {
    await seed("v3.27", "manifest");
    await expect(seed("v3.28", "manifest")).rejects.toMatchObject({ code: "INSTALLED_DIFFERENTLY" });
  });

  it("runs where its method put it, in images of its version, with as many containers as READY counted", async () => {
    await seed("v3.22.2", "manifest");
    const { spec } = await agent();
    expect(spec.template.spec.containers.map(({ image }) => image)).toEqual([
      "registry.vendor.io/vendor/node:v3.22.2",
      "registry.vendor.io/vendor/cni:v3.22.2",
    ]);
    expect(vendorNames.ready.apiDatastore).toBe(`2/${spec.template.spec.containers.length}`);
  });

  it("with the operator has its objects owned by the installation, and a status that says all is well", async () => {
    await seed("v3.27", "operator");
    const daemonSet = await agent("vendor-node", "vendor-system");
    const kind = { ...vendorNames.groups.operator, kind: "Installation", plural: "installations", namespaced: false };
    const installation = await server.client.get<KubeObject>(kind, { name: "default" });
    expect(daemonSet.metadata.ownerReferences).toMatchObject([
      { kind: "Installation", uid: installation.metadata.uid },
    ]);
    expect(installation["status"]).toMatchObject({ version: "v3.27.5", variant: "OpenSource" });
    const information = await server.client.get<KubeObject>(stored("clusterInformation"), { name: "default" });
    expect(information["spec"]).toMatchObject({ vendorVersion: "v3.27.5", datastoreReady: true });
  });

  it("has the aggregated API from v3.20 on, in the namespace it had then", async () => {
    await seed("v3.19", "operator");
    expect(names(await list(API_SERVICES))).not.toContain("v3.vendor.io");
    expect(await list(DEPLOYMENTS, "vendor-apiserver")).toEqual([]);
  });

  it("has flow logs and their UI from v3.30 on", async () => {
    await seed("v3.30", "chart");
    expect(names(await list(DEPLOYMENTS, "vendor-system"))).toEqual(
      expect.arrayContaining(["vendor-flow-logs", "vendor-flow-ui"]),
    );
    expect(names(await list(API_SERVICES))).toContain("v3.vendor.io");
    expect(names(await list(DEPLOYMENTS, "vendor-apiserver"))).toEqual(["vendor-apiserver"]);
  });

  it("from a chart carries the package manager's record and marks", async () => {
    await seed("v3.26", "chart");
    const secret = await server.client.get<KubeObject>(SECRETS, {
      name: "sh.helm.release.v1.vendor.v1",
      namespace: "vendor-operator",
    });
    expect(secret.metadata.labels).toMatchObject({ owner: "helm", status: "deployed" });
    const { release } = secret["data"] as { release: string };
    const packed = Buffer.from(Buffer.from(release, "base64").toString(), "base64");
    expect(JSON.parse(gunzipSync(packed).toString())).toMatchObject({
      name: "vendor",
      chart: { metadata: { version: "v3.26.5" } },
    });
    const operator = await server.client.get<KubeObject>(DEPLOYMENTS, {
      name: "vendor-operator",
      namespace: "vendor-operator",
    });
    expect(operator.metadata.labels).toHaveProperty(["app.kubernetes.io/managed-by"], "Helm");
    expect(operator.metadata.managedFields?.map(({ manager }) => manager)).toEqual(["helm"]);
  });

  it("on etcd has nothing of ours in the API but the workloads, and a pod that is half ready", async () => {
    await seed("v3.27", "manifest-etcd");
    expect(names(await list(CRDS))).toEqual([]);
    const settings = await server.client.get<KubeObject>(CONFIG_MAPS, { name: "vendor-config", namespace: SYSTEM });
    expect(settings["data"]).toHaveProperty("etcd_endpoints");
    expect(await server.client.get(SECRETS, { name: "vendor-etcd-secrets", namespace: SYSTEM })).toBeDefined();
    const { spec } = await agent();
    expect(spec.template.spec.containers).toHaveLength(2);
  });

  it("with the overlay runs it beside the agent, and gives out no addresses itself", async () => {
    await seed("v3.27", "manifest-canal");
    const { spec } = await agent("vendor-overlay");
    expect(spec.template.spec.containers.map(({ name }) => name)).toEqual(["vendor-node", "overlay"]);
    expect(await list(stored("ipPool"))).toEqual([]);
  });

  it("has host endpoints the controllers made, and others that people made", async () => {
    await seed("v3.27", "operator");
    const endpoints = await list(stored("hostEndpoint"));
    const [first, second] = nodes as [string, string];
    expect(names(endpoints).sort()).toEqual(
      [`${first}-all-interfaces`, `${first}-auto-hep`, `${second}-auto-hep`, `${second}-eth1`].sort(),
    );
    const automatic = endpoints.filter(
      ({ metadata }) => metadata.labels?.["vendor.io/created-by"] === "vendor-kube-controllers",
    );
    expect(automatic.every(({ metadata }) => metadata.name.endsWith("-auto-hep"))).toBe(true);
    expect(automatic).toHaveLength(2);
    expect(automatic[0]?.["spec"]).toMatchObject({ interfaceName: "*", profiles: ["vendor-default-allow"] });
  });

  it("has the temporary policy only if it came from before v3.14", async () => {
    await seed("v3.15", "manifest", { cameFromBeforeV314: true });
    expect(names(await list(stored("globalNetworkPolicy")))).toContain("default.allow-all-upgrade");
  });

  it("has a pool with IPIP from the plain manifests, and a block for every Linux node", async () => {
    await seed("v3.27", "manifest");
    const [pool] = await list(stored("ipPool"));
    expect(pool?.["spec"]).toMatchObject({ cidr: "10.244.0.0/16", ipipMode: "Always", vxlanMode: "Never" });
    expect(names(await list(stored("ipamBlock")))).toEqual(["10-244-0-0-26", "10-244-1-0-26"]);
  });

  it("on a platform with its own CNI plugin has no pool, and says whose plugin it is", async () => {
    await seed("v3.27", "operator", { kind: "eks" });
    expect(await list(stored("ipPool"))).toEqual([]);
    const kind = { ...vendorNames.groups.operator, kind: "Installation", plural: "installations", namespaced: false };
    const installation = await server.client.get<KubeObject>(kind, { name: "default" });
    expect(installation["spec"]).toMatchObject({ clusterKind: "eks", cni: { type: "AmazonVPC" } });
  });

  it.each(["v3.27", "v3.28"])("%s: owns objects under the UIDs it showed for v3 resources", async (version) => {
    await seed(version, "operator");
    const policy = await server.client.get<KubeObject>(stored("networkPolicy", true), {
      name: "default.allow-web",
      namespace: "shop",
    });
    const notes = await server.client.get<KubeObject>(CONFIG_MAPS, { name: "allow-web-notes", namespace: "shop" });
    const uid = v3Uid(policy.metadata.uid ?? "", version);
    expect(notes.metadata.ownerReferences).toEqual([
      { apiVersion: "vendor.io/v3", kind: "NetworkPolicy", name: "allow-web", uid },
    ]);
    expect(uid === policy.metadata.uid).toBe(version === "v3.27");
  });

  it("keeps what a user changed by hand, under the user's own name", async () => {
    await seed("v3.27", "manifest", { userEdits: true });
    const { metadata, spec } = await agent();
    expect(JSON.stringify(spec.template.spec.containers[0])).toContain("DATAPLANE_LOGSEVERITYSCREEN");
    expect(metadata.annotations).toHaveProperty(["example.com/owned-by"], "platform-team");
    expect(metadata.annotations).toHaveProperty(["kubectl.kubernetes.io/last-applied-configuration"]);
    expect(metadata.managedFields?.map(({ manager }) => manager)).toEqual([
      "kubectl-client-side-apply",
      "kubectl-edit",
    ]);
  });

  it("changes nothing when it refuses", async () => {
    const before = await everything();
    await expect(seed("v3.13", "operator")).rejects.toMatchObject({ code: "INSTALLED_VERSION_TOO_OLD" });
    await expect(seed("v3.31", "operator")).rejects.toMatchObject({ code: "INSTALLED_VERSION_NOT_OLDER" });
    await expect(seed("latest", "operator")).rejects.toMatchObject({ code: "INSTALLED_VERSION_UNREADABLE" });
    expect(await everything()).toEqual(before);
  });
});

describe("the definitions of an older version", () => {
  const kindsOf = (version: string) => oldDefinitions(oldRelease(version)).map(({ spec }) => spec.names.kind);
  const fieldsOf = (version: string, kind: string) =>
    JSON.stringify(oldDefinitions(oldRelease(version)).find(({ spec }) => spec.names.kind === kind));

  it("lack the kinds that came later", () => {
    expect(kindsOf("v3.28")).not.toContain("Tier");
    expect(kindsOf("v3.29")).toContain("Tier");
    expect(kindsOf("v3.29")).not.toContain("FlowLogs");
    expect(kindsOf("v3.30")).toEqual(expect.arrayContaining(["FlowLogs", "FlowUI"]));
  });

  it("lack the fields that came later, in lists and in columns too", () => {
    expect(fieldsOf("v3.18", "Installation")).not.toContain('"linuxDataplane"');
    expect(fieldsOf("v3.19", "Installation")).toContain('"linuxDataplane"');
    expect(fieldsOf("v3.29", "Installation")).not.toContain('"assignmentMode"');
    expect(fieldsOf("v3.28", "GlobalNetworkPolicy")).not.toContain(".spec.tier");
    expect(fieldsOf("v3.30", "GlobalNetworkPolicy")).toContain(".spec.tier");
  });
});

describe("how an older version was installed", () => {
  it.each([
    [undefined, undefined, "operator"],
    ["chart", "api", "chart"],
    [undefined, "etcd", "manifest-etcd"],
    ["manifest", "etcd", "manifest-etcd"],
    ["manifest-canal", "etcd", "manifest-canal-etcd"],
    ["manifest-policy-only", undefined, "manifest-policy-only"],
  ] as const)("%s on %s is %s", (method, datastore, expected) => {
    expect(installMethod(method, datastore)).toBe(expected);
  });

  it("refuses what never was", () => {
    const code = (act: () => unknown) => {
      try {
        act();
      } catch (error) {
        return (error as { code?: string }).code;
      }
      return undefined;
    };
    expect(code(() => installMethod("snap", undefined))).toBe("INSTALL_METHOD_UNKNOWN");
    expect(code(() => installMethod("operator", "etcd"))).toBe("INSTALL_METHOD_NOT_ON_ETCD");
  });
});
