import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import { EtcdConnection } from "../../src/datastore/etcd/etcd-connection.ts";
import { ABSENT, readFolder, writeKey } from "../../src/datastore/etcd/etcd-keys.ts";
import { type Api, namespace, startApi } from "../support/api.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { startV3Api } from "../support/v3-api.ts";

/** v3 resources with kubectl's words, wherever they are kept: the same story on each datastore. */

interface World {
  tool: InProcessVendorctl;
  flags: string[];
  close(): Promise<void>;
}

const kubeconfig = (url: string) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "story", cluster: { server: url } }],
    users: [{ name: "story", user: {} }],
    contexts: [{ name: "story", context: { cluster: "story", user: "story" } }],
    "current-context": "story",
  });

async function onApi(api: Api): Promise<World> {
  await api.create("/api/v1/namespaces", namespace("shop"));
  const tool = inProcessVendorctl(kubeconfig(api.url));
  return {
    tool,
    flags: [],
    close: async () => {
      tool.close();
      await api.close();
    },
  };
}

async function storedOnly(): Promise<World> {
  const api = await startApi();
  for (const definition of customResourceDefinitions()) {
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
  }
  return await onApi(api);
}

async function onEtcd(tls: boolean): Promise<World> {
  const etcd: EtcdServer = await startEtcd({ tls });
  const tool = inProcessVendorctl(kubeconfig("http://127.0.0.1:1"));
  return {
    tool,
    flags: etcd.flags,
    close: async () => {
      tool.close();
      await etcd.stop();
    },
  };
}

const etcdThere = hasEtcd();
const PLACES: { where: string; open: () => Promise<World>; needsEtcd?: true; prefix?: string }[] = [
  { where: "through the API people use", open: async () => onApi(await startV3Api()) },
  { where: "as they are stored, where no aggregated API is up", open: storedOnly },
  { where: "in etcd", open: () => onEtcd(false), needsEtcd: true },
  { where: "in etcd with TLS and client certificates", open: () => onEtcd(true), needsEtcd: true },
];

const POLICY = `
apiVersion: vendor.io/v3
kind: GlobalNetworkPolicy
metadata:
  name: deny-metadata
  labels: { team: platform }
spec:
  order: 100
  selector: all()
  egress:
    - action: Deny
      destination: { nets: [169.254.169.254/32] }
    - action: Allow
`;
const MANY = `
apiVersion: vendor.io/v3
kind: Tier
metadata: { name: security }
spec: { order: 500 }
---
apiVersion: vendor.io/v3
kind: NetworkPolicy
metadata: { name: security.web, namespace: shop }
spec: { tier: security, selector: "app == 'web'" }
---
apiVersion: v1
kind: List
items:
  - { apiVersion: vendor.io/v3, kind: NetworkSet, metadata: { name: partners, namespace: shop }, spec: { nets: [192.0.2.0/24] } }
`;

describe.each(PLACES)("v3 resources $where", ({ open, needsEtcd }) => {
  let world: World;
  beforeAll(async () => {
    if (needsEtcd && !etcdThere) return;
    world = await open();
  });
  afterAll(() => world?.close());
  const step = (title: string, body: () => Promise<void>) =>
    it(title, async ({ skip }) => {
      skip(needsEtcd === true && !etcdThere, NO_ETCD);
      await body();
    });
  const ok = (...args: string[]) => world.tool.ok(...args, ...world.flags);
  const refused = async (...args: string[]) => {
    const { exit, err } = await world.tool.run(...args, ...world.flags);
    expect(exit).not.toBe(0);
    return err;
  };
  const json = async (...args: string[]) => JSON.parse(await ok(...args, "-o", "json"));

  step("are applied from a file, and the second time nothing changes", async () => {
    const file = world.tool.file("policy.yaml", POLICY);
    expect(await ok("apply", "-f", file, "--dry-run")).toBe(
      "globalnetworkpolicy.vendor.io/deny-metadata created (dry run)\n",
    );
    expect(await refused("get", "gnp", "deny-metadata")).toContain(
      "globalnetworkpolicy.vendor.io/deny-metadata not found [RESOURCE_NOT_FOUND]",
    );
    expect(await ok("apply", "-f", file)).toBe("globalnetworkpolicy.vendor.io/deny-metadata created\n");
    expect(await ok("apply", "-f", file)).toBe("globalnetworkpolicy.vendor.io/deny-metadata unchanged\n");
  });

  step("are stored with a warning where the cluster does not do all they ask for", async () => {
    const configuration = (bpfEnabled: boolean) =>
      world.tool.file(
        "configuration.yaml",
        `{ apiVersion: vendor.io/v3, kind: DataplaneConfiguration, metadata: { name: default }, spec: { bpfEnabled: ${bpfEnabled} } }`,
      );
    await ok("apply", "-f", configuration(true));
    const log = world.tool.file(
      "log.yaml",
      "{ apiVersion: vendor.io/v3, kind: GlobalNetworkPolicy, metadata: { name: logs }, spec: { ingress: [{ action: Log }] } }",
    );
    const warning =
      "Warning: globalnetworkpolicy.vendor.io/logs: spec.ingress[0].action: The eBPF data plane writes no lines for this Log rule. Read vendor node show counters, or log on the nftables data plane. [EBPF_LOG_RULE]\n";
    const run = (...args: string[]) => world.tool.run(...args, ...world.flags);
    expect(await run("apply", "-f", log, "--dry-run")).toMatchObject({ exit: 0, err: warning });
    expect(await run("apply", "-f", log)).toMatchObject({ exit: 0, err: warning });
    const change = '{"spec":{"order":7}}';
    expect(await run("patch", "gnp", "logs", "-p", change)).toMatchObject({ exit: 0, err: warning });
    await ok("apply", "-f", configuration(false));
    expect(await run("apply", "-f", log)).toMatchObject({ exit: 0, err: "" });
    await ok("delete", "gnp", "logs");
    await ok("delete", "dataplaneconfiguration", "default");
  });

  step("are read as people wrote them, with what was filled in", async () => {
    const policy = await json("get", "globalnetworkpolicies", "deny-metadata");
    expect(policy).toMatchObject({
      apiVersion: "vendor.io/v3",
      kind: "GlobalNetworkPolicy",
      metadata: { name: "deny-metadata", labels: { team: "platform" } },
      spec: { tier: "default", types: ["Egress"], order: 100 },
    });
    expect(policy.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(await ok("get", "gnp")).toMatch(
      /^NAME +TIER +ORDER +SELECTOR +AGE\ndeny-metadata +default +100 +all\(\) +\d+s$/m,
    );
    expect(await ok("get", "gnp", "-o", "wide")).toContain(" Egress\n");
    expect(await ok("get", "GlobalNetworkPolicy.vendor.io", "-o", "name")).toBe(
      "globalnetworkpolicy.vendor.io/deny-metadata\n",
    );
    expect(await ok("get", "gnp/deny-metadata", "-o", "yaml")).toContain("kind: GlobalNetworkPolicy\n");
  });

  step("of several documents and lists come together: a tier, its policy, a set", async () => {
    const folder = join(world.tool.home, "many", "deeper");
    mkdirSync(folder, { recursive: true });
    world.tool.file("many/deeper/all.yaml", MANY);
    expect(await ok("apply", "-R", "-f", join(world.tool.home, "many"))).toBe(
      "tier.vendor.io/security created\nnetworkpolicy.vendor.io/security.web created\nnetworkset.vendor.io/partners created\n",
    );
    expect(await ok("get", "networkpolicies,networksets", "-n", "shop", "-o", "name")).toBe(
      "networkpolicy.vendor.io/security.web\nnetworkset.vendor.io/partners\n",
    );
    expect(await ok("get", "netset", "-A")).toMatch(/^NAMESPACE +NAME +AGE\nshop +partners +\d+s$/m);
    expect((await world.tool.run("get", "netset", ...world.flags)).err).toBe(
      "no resources found in namespace default\n",
    );
  });

  step("are labelled, and a label with another value stays unless it is overwritten", async () => {
    expect(await ok("label", "netset", "partners", "env=prod", "-n", "shop")).toBe(
      "networkset.vendor.io/partners labeled\n",
    );
    expect(await refused("label", "netset", "partners", "env=test", "-n", "shop")).toContain("[RESOURCE_LABEL_TAKEN]");
    expect(await ok("label", "netset", "partners", "env=test", "-n", "shop", "--overwrite")).toContain("labeled");
    expect(await ok("get", "netset", "-n", "shop", "-l", "env=test", "-o", "name")).toBe(
      "networkset.vendor.io/partners\n",
    );
    await ok("label", "netset", "partners", "env-", "-n", "shop");
    expect((await json("get", "netset", "partners", "-n", "shop")).metadata.labels?.env).toBeUndefined();
  });

  step("are patched, by merging or item by item, and not strategically", async () => {
    expect(await ok("patch", "gnp", "deny-metadata", "-p", "spec: {order: 50}")).toBe(
      "globalnetworkpolicy.vendor.io/deny-metadata patched\n",
    );
    const operations = JSON.stringify([{ op: "replace", path: "/spec/egress/0/action", value: "Allow" }]);
    await ok("patch", "gnp", "deny-metadata", "--type", "json", "-p", operations);
    expect((await json("get", "gnp", "deny-metadata")).spec).toMatchObject({
      order: 50,
      egress: [{ action: "Allow" }, {}],
    });
    expect(await refused("patch", "gnp", "deny-metadata", "--type", "strategic", "-p", "{}")).toContain(
      "[RESOURCE_PATCH_STRATEGIC]",
    );
  });

  step("that are wrong are refused with every reason, and nothing of the file is stored", async () => {
    const bad = world.tool.file(
      "bad.yaml",
      `${POLICY.replace("deny-metadata", "fine")}---${POLICY.replace("deny-metadata", "wrong").replace("all()", "a = b").replace("169.254.169.254/32", "nowhere")}`,
    );
    const err = await refused("apply", "-f", bad);
    expect(err).toContain("spec.selector");
    expect(err).toContain("spec.egress[0].destination.nets[0]");
    expect(await ok("get", "gnp", "-o", "name")).not.toContain("fine");
  });

  step("a tier is kept while it holds policies; built-in ones always", async () => {
    expect(await refused("delete", "tier", "security")).toMatch(/still has/);
    expect(await refused("delete", "tier", "default")).toMatch(/it is a built-in tier|not found/);
  });

  step("are deleted by name, by label and by file", async () => {
    expect(await ok("delete", "-f", join(world.tool.home, "policy.yaml"), "--dry-run")).toContain("deleted (dry run)");
    expect(await ok("delete", "-f", join(world.tool.home, "policy.yaml"))).toBe(
      "globalnetworkpolicy.vendor.io/deny-metadata deleted\n",
    );
    expect(await refused("delete", "gnp", "deny-metadata")).toContain("[RESOURCE_NOT_FOUND]");
    await ok("delete", "gnp", "deny-metadata", "--ignore-not-found");
    await ok("delete", "networkpolicy", "security.web", "-n", "shop");
    await ok("delete", "netset", "--all", "-n", "shop");
    expect(await ok("delete", "tier", "security")).toBe("tier.vendor.io/security deleted\n");
  });
});

describe("etcd", () => {
  let etcd: EtcdServer | undefined;
  let tool: InProcessVendorctl;
  beforeAll(async () => {
    tool = inProcessVendorctl(kubeconfig("http://127.0.0.1:1"));
    if (etcdThere) etcd = await startEtcd({ tls: true });
  });
  afterAll(async () => {
    tool.close();
    await etcd?.stop();
  });

  it("is told by a file or the environment as well, and refuses strangers", async ({ skip }) => {
    skip(!etcdThere, NO_ETCD);
    const [, , , endpoint, , ca, , cert, , key] = etcd!.flags;
    const config = tool.file(
      "own.cfg",
      JSON.stringify({ datastore: "etcd", etcd: { endpoints: [endpoint], ca, cert, key } }),
    );
    expect((await tool.run("get", "tiers", "--config", config)).exit).toBe(0);
    const stranger = await tool.run("get", "tiers", ...etcd!.strangerFlags);
    expect(stranger).toMatchObject({ exit: 69, err: expect.stringContaining("[ETCD_UNREACHABLE]") });
  });

  it("keeps a resource under its own key, policies with their tier, in either dialect", async ({ skip }) => {
    skip(!etcdThere, NO_ETCD);
    const plain = await startEtcd();
    try {
      const file = tool.file("policy.yaml", POLICY);
      await tool.ok("apply", "-f", file, ...plain.flags);
      const other = tool.file("other.yaml", POLICY.replace("vendor.io", "projectcalico.org"));
      await tool.ok("--names", "calico", "apply", "-f", other, ...plain.flags);
      const etcd = new EtcdConnection({ endpoints: [plain.endpoint], tls: () => ({}) });
      const keys = (await readFolder(etcd, "/")).values.map(({ key }) => key);
      etcd.close();
      expect(keys).toEqual([
        "/calico/resources/v3/projectcalico.org/globalnetworkpolicies/default.deny-metadata",
        "/vendor/resources/v3/globalnetworkpolicies/default.deny-metadata",
      ]);
      expect(await tool.ok("--names", "calico", "get", "gnp", "-o", "name", ...plain.flags)).toBe(
        "globalnetworkpolicy.projectcalico.org/deny-metadata\n",
      );
    } finally {
      await plain.stop();
    }
  });

  it("does not lose a change of somebody who writes at the same time", async ({ skip }) => {
    skip(!etcdThere, NO_ETCD);
    const plain = await startEtcd();
    try {
      await tool.ok("apply", "-f", tool.file("policy.yaml", POLICY), ...plain.flags);
      const label = (i: number) => tool.run("label", "gnp", "deny-metadata", `writer-${i}=yes`, ...plain.flags);
      const results = await Promise.all(Array.from({ length: 4 }, (_, i) => label(i)));
      const done = results.filter(({ exit }) => exit === 0).length;
      const { metadata } = JSON.parse(await tool.ok("get", "gnp", "deny-metadata", "-o", "json", ...plain.flags));
      const written = Object.keys(metadata.labels).filter((key) => key.startsWith("writer-"));
      expect(written).toHaveLength(done);
      for (const { exit, err } of results) if (exit !== 0) expect(err).toContain("[RESOURCE_OVERTAKEN]");
    } finally {
      await plain.stop();
    }
  });

  it("is not written to by a tool of another version; reading works", async ({ skip }) => {
    skip(!etcdThere, NO_ETCD);
    const plain = await startEtcd();
    try {
      const information = {
        apiVersion: "vendor.io/v3",
        kind: "ClusterInformation",
        metadata: { name: "default" },
        spec: { vendorVersion: "v3.27.4" },
      };
      const etcd = new EtcdConnection({ endpoints: [plain.endpoint], tls: () => ({}) });
      await writeKey(etcd, "/vendor/resources/v3/clusterinformations/default", JSON.stringify(information), ABSENT);
      etcd.close();
      const { exit, err } = await tool.run("apply", "-f", tool.file("policy.yaml", POLICY), ...plain.flags);
      expect({ exit, err }).toMatchObject({ exit: 3, err: expect.stringContaining("[TOOL_VERSION_MISMATCH]") });
      expect(err).toContain(
        "does not write to a cluster of v3.27.4: a tool of another version may write data the cluster misreads",
      );
      expect(await tool.ok("get", "clusterinformations", "-o", "name", ...plain.flags)).toBe(
        "clusterinformation.vendor.io/default\n",
      );
    } finally {
      await plain.stop();
    }
  });
});
