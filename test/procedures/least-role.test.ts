import { afterAll, afterEach, describe, expect } from "vitest";
import { parse } from "yaml";
import type { KubeObject } from "../../src/api/object.ts";
import type { Attributes } from "../../src/apiserver/auth/policy-rule.ts";
import { asksFor, requestInfo } from "../../src/apiserver/request-info.ts";
import { createClient } from "../../src/cluster/client.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  NAMESPACES,
  NETWORK_POLICIES,
  ROLE_BINDINGS,
  ROLES,
} from "../../src/cluster/kinds.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import type { ClusterOptions } from "../../src/local/cluster.ts";
import { planRights } from "../../src/procedures/rights/plan-rights.ts";
import type { Right } from "../../src/procedures/rights/right.ts";
import { openReleaseFiles } from "../../src/releases/open-release-files.ts";
import {
  applyCalicoEtcd,
  type CalicoEtcd,
  COPIED_POLICY,
  calicoEtcd,
  playCalicoControllers,
  seedCalicoEtcd,
  writeCalicoEtcdRelease,
} from "../support/calico-etcd.ts";
import { applyCalicoManifest, writeCalicoRelease } from "../support/calico-manifest.ts";
import { startMigratingOperator } from "../support/calico-operator.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";
import { describeKind, type KindScenario } from "../support/kind-scenario.ts";

const USER = "ops";
const RBAC = "rbac.authorization.k8s.io";

type Asked = Extract<Attributes, { resource: true }>;

/** What one user asked of the API server, and what was refused. */
class Requests {
  asked: Asked[] = [];
  denied: string[] = [];

  readonly front: NonNullable<ClusterOptions["front"]> = (router) => ({
    handle: async (incoming) => {
      const reply = await router.handle(incoming);
      if (incoming.headers["impersonate-user"] !== USER) return reply;
      const query = new URLSearchParams(incoming.search);
      const info = asksFor(requestInfo(incoming.method, incoming.path, query), query);
      if (info.resource && info.group !== "authorization.k8s.io") this.asked.push(info);
      if (reply.status === 403) this.denied.push(`${incoming.method} ${incoming.path}${incoming.search}`);
      return reply;
    },
  });

  clear(): void {
    this.asked = [];
    this.denied = [];
  }

  uses(right: Right): boolean {
    // Asked for by the API server itself when a role or a binding is written.
    if (right.verb === "escalate" || right.verb === "bind") return true;
    const [plural, subresource = ""] = right.resource.split("/");
    return this.asked.some(
      (one) =>
        one.verb === right.verb &&
        (right.group === "*" || one.group === right.group) &&
        (plural === "*" || one.plural === plural) &&
        one.subresource === subresource &&
        (right.namespace === undefined || one.namespace === right.namespace) &&
        (right.name === undefined || one.name === right.name),
    );
  }
}

/** The user gets these roles and no others. */
async function grant({ cluster: { client } }: KindScenario, roles: readonly KubeObject[]): Promise<void> {
  for (const kind of [CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, CLUSTER_ROLES, ROLES]) {
    for (const { metadata } of (await client.list(kind)).items) {
      if (metadata.name.startsWith("vendorctl-")) await client.delete(kind, metadata);
    }
  }
  for (const role of roles) {
    const { name, namespace } = role.metadata;
    const subjects = [{ apiGroup: RBAC, kind: "User", name: USER }];
    const roleRef = { apiGroup: RBAC, kind: role.kind, name };
    const binding = { apiVersion: `${RBAC}/v1`, kind: `${role.kind}Binding`, metadata: { name, namespace } };
    await client.create(namespace === undefined ? CLUSTER_ROLES : ROLES, role);
    await client.create(namespace === undefined ? CLUSTER_ROLE_BINDINGS : ROLE_BINDINGS, {
      ...binding,
      roleRef,
      subjects,
    } as KubeObject);
  }
}

async function rolesOf({ run }: KindScenario, ...command: string[]): Promise<KubeObject[]> {
  const { exit, out, err } = await run("auth", "can-i", "--list", "-o", "yaml", ...command);
  if (exit !== 0) throw new Error(`${err}${out}`);
  return (parse(out) as { items: KubeObject[] }).items;
}

/** Runs a command as a user with exactly the role that is printed for it, and looks for rights that nothing used. */
async function runWithItsRole(story: KindScenario, requests: Requests, ...command: string[]): Promise<void> {
  const { plan } = await story.plan(...command);
  const signal = new AbortController().signal;
  const manifestUrl = command[command.indexOf("--manifest-url") + 1];
  const given = command.includes("--manifest-url") && manifestUrl !== undefined ? { manifestUrl } : {};
  const reading = { client: story.cluster.client, files: openReleaseFiles({ ...given, signal }), signal };
  const { read, run } = await planRights(plan, reading);
  await grant(story, await rolesOf(story, ...command));
  requests.clear();
  await story.ok("--as", USER, ...command, "-y");
  expect(requests.denied).toEqual([]);
  const always = [...read, ...run].filter(({ sometimes, optional }) => sometimes === undefined && !optional);
  const superfluous = always.filter((right) => !requests.uses(right));
  expect(superfluous.map((right) => Object.values(right).join(" "))).toEqual([]);
}

describe("a user with exactly the role that is printed for a command", () => {
  const requests = new Requests();
  const story = describeKind({ kind: "generic", front: requests.front });
  const { step, run, ok } = story;
  afterEach(() => requests.clear());

  step("is refused without it, once and with every right that is missing, and nothing is changed", async () => {
    await grant(story, []);
    const { exit, err } = await run("--as", USER, "install", "-y");
    expect(exit).toBe(77);
    expect(err).toContain("[RIGHTS_MISSING]");
    expect(err).toContain("list nodes");
    expect(err).toContain("list daemonsets.apps");
    expect(err).toContain("vendorctl auth can-i --list -o yaml install");
    const names = (await story.cluster.client.list(NAMESPACES)).items.map(({ metadata }) => metadata.name);
    expect(names.filter((name) => name.startsWith("vendor"))).toEqual([]);
  });

  step("is refused with rights to read alone: all that the steps need is named before the first", async () => {
    const [role, ...others] = await rolesOf(story, "check");
    await grant(story, [role as KubeObject, ...others]);
    const { exit, err } = await run("--as", USER, "install", "-y");
    expect(exit).toBe(77);
    expect(err).toContain("get, list, create, update, deletecollection secrets in kube-system");
    expect(err).toMatch(/create,? .*customresourcedefinitions/);
    expect((await run("auth", "can-i", "--as", USER, "install")).out).toBe("no\n");
    expect(requests.asked.filter(({ verb }) => !["get", "list", "watch"].includes(verb))).toEqual([]);
  });

  step("installs", () => runWithItsRole(story, requests, "install", "--dataplane", "standard"));

  step("sees with can-i that it may, and what it may", async () => {
    const command = ["install", "--dataplane", "standard"];
    expect(await ok("auth", "can-i", "install")).toBe("yes\n");
    expect((await run("auth", "can-i", "--as", USER, ...command)).exit).toBe(0);
  });

  step("gives users with edit in a namespace the network policies there, and none elsewhere", async () => {
    const { client } = story.cluster;
    await client.create(ROLE_BINDINGS, {
      apiVersion: `${RBAC}/v1`,
      kind: "RoleBinding",
      metadata: { name: "tenant-edits", namespace: "default" },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: "edit" },
      subjects: [{ apiGroup: RBAC, kind: "User", name: "tenant" }],
    });
    const connection = loadConnection({ kubeconfig: story.file("kubeconfig"), as: "tenant" });
    const tenant = createClient(httpsTransport(connection), { userAgent: "tenant" });
    const made = async (namespace: string, name: string) => {
      const policy = { apiVersion: "vendor.io/v3", kind: "NetworkPolicy", metadata: { name, namespace } };
      const spec = { selector: "all()", types: ["Ingress"] };
      const write = tenant.create(await tenant.resourceFor(policy), { ...policy, spec });
      return await write.then(
        () => "created",
        ({ code }: { code?: unknown }) => code,
      );
    };
    expect([await made("default", "web"), await made("kube-system", "web")]).toEqual(["created", 403]);
    tenant.close();
  });

  step("switches, and rolls the switch back", async () => {
    await runWithItsRole(story, requests, "switch", "--to", "bpf");
    requests.clear();
    await ok("--as", USER, "rollback", "-y");
    expect(requests.denied).toEqual([]);
  });

  step("uninstalls", () => runWithItsRole(story, requests, "uninstall", "--remove-crds"));
});

describe("a user with exactly the role that is printed for an upgrade", () => {
  const requests = new Requests();
  const installed = { version: "v3.27", method: "operator" } as const;
  const story = describeKind({ kind: "generic", front: requests.front, installed });

  story.step("upgrades, and rolls it back", async () => {
    await runWithItsRole(story, requests, "upgrade");
    requests.clear();
    await story.ok("--as", USER, "rollback", "-y");
    expect(requests.denied).toEqual([]);
  });
});

describe("a user with exactly the role that is printed for a migration by the public operator", () => {
  const requests = new Requests();
  const story = describeKind({ kind: "generic", front: requests.front, cni: "preinstalled" });
  let operator: ReturnType<typeof startMigratingOperator>;
  afterAll(() => operator?.stop());

  story.step("migrates, and rolls it back", async () => {
    const { client } = story.cluster;
    await applyCalicoManifest(client, { typha: true });
    operator = startMigratingOperator(client);
    const url = writeCalicoRelease(story.file("release"));
    await runWithItsRole(story, requests, "--names", "calico", "migrate", "operator", "--manifest-url", url);
    requests.clear();
    await story.ok("--as", USER, "rollback", "-y");
    expect(requests.denied).toEqual([]);
  });
});

const noEtcd = hasEtcd() ? undefined : NO_ETCD;

describe.skipIf(noEtcd)(
  `a user with exactly the role that is printed for leaving etcd with Calico${noEtcd ?? ""}`,
  () => {
    const requests = new Requests();
    const story = describeKind({ kind: "generic", front: requests.front, cni: "preinstalled" });
    let server: EtcdServer | undefined;
    let data: CalicoEtcd | undefined;
    afterAll(async () => {
      data?.close();
      await server?.stop();
    });

    story.step("migrates, and rolls it back", async () => {
      const { client, nodeNames } = story.cluster;
      server = await startEtcd({ tls: true });
      data = calicoEtcd(server);
      await applyCalicoEtcd(client, server);
      await client.create(NETWORK_POLICIES, COPIED_POLICY);
      await seedCalicoEtcd(data, nodeNames);
      await playCalicoControllers(data, client);
      const url = writeCalicoEtcdRelease(story.file("etcd-release"));
      await runWithItsRole(story, requests, "--names", "calico", "migrate", "datastore", "--manifest-url", url);
      requests.clear();
      await story.ok("--as", USER, "rollback", "-y");
      expect(requests.denied).toEqual([]);
    });
  },
);
