import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VERSION } from "../../src/api/tables/release.ts";
import { createClient } from "../../src/cluster/client.ts";
import { CONFIG_MAPS, DEPLOYMENTS, EVENTS, PODS, SECRETS, SERVICES } from "../../src/cluster/kinds.ts";
import type { Program } from "../../src/cluster/program.ts";
import { CodedError } from "../../src/kit/errors.ts";
import { healthServer } from "../../src/kit/health-server.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import type { Deployment, Pod } from "../../src/local/controllers/workload-types.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";

/** What the test programs and the stories tell each other beside the cluster: how far the program got. */
const seen = { stops: 0, ready: false, conflicts: 0 };

/** Says what it was given, tries a read it may and one it may not, serves health, and stops when asked. */
const probe: Program = async (world) => {
  const { POD_NAME, GREETING, PASSWORD, NODENAME, EXPANDED } = world.env;
  world.log.info({ POD_NAME, GREETING, PASSWORD, NODENAME, EXPANDED }, "environment");
  const client = createClient(world.transport(), { userAgent: "probe" });
  const namespace = "apps";
  const maps = await client.list(CONFIG_MAPS, { namespace });
  world.log.info({ found: maps.items.length > 0 }, "config maps are readable");
  await client
    .list(SECRETS, { namespace })
    .catch((error) => world.log.warn({ code: error.code }, String(error.message)));
  const server = createServer((_request, response) => response.end("hello"));
  await world.listen(server, 8000);
  await world.listen(healthServer({ ready: { told: () => (seen.ready ? undefined : "not yet told") } }), 8080);
  await new Promise<void>((resolve) => world.signal.addEventListener("abort", () => resolve(), { once: true }));
  // A graceful stop is allowed to take a moment, and its last words still reach the server.
  await client.patch(
    CONFIG_MAPS,
    { name: "settings", namespace },
    { type: "merge", patch: { data: { stopped: "yes" } } },
  );
  seen.stops++;
};

const crash: Program = async () => {
  throw new CodedError("TEST_CRASH", "it cannot work like this", { exitCode: 78, fix: "do otherwise" });
};

/** Keeps asking the API server, and says once each time the answer changes. */
const asking: Program = async ({ transport, signal, log }) => {
  const client = createClient(transport(), { userAgent: "asking" });
  let said = "";
  while (!signal.aborted) {
    const word = await client.list(CONFIG_MAPS, { namespace: "apps", signal }).then(
      () => "reached",
      (error: Error) => error.message,
    );
    if (word !== said) log.info({}, word);
    said = word;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

const programs = { probe: async () => probe, crash: async () => crash, asking: async () => asking };
const image = `registry.vendor.io/vendor/vendor:${VERSION}`;
const env = [
  { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
  { name: "NODENAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
  { name: "GREETING", valueFrom: { configMapKeyRef: { name: "settings", key: "greeting" } } },
  { name: "PASSWORD", valueFrom: { secretKeyRef: { name: "secret", key: "password" } } },
  { name: "EXPANDED", value: "$(GREETING), $(FROM_MAP_greeting) and $$(GREETING)" },
];
const envFrom = [{ prefix: "FROM_MAP_", configMapRef: { name: "settings" } }];

let cluster: LocalCluster;
beforeAll(async () => {
  cluster = await startCluster({ name: "programs", kind: "generic", nodes: 2, programs, cni: "preinstalled" });
  const { client } = cluster;
  const make = async (object: { apiVersion: string; kind: string; metadata: { name: string; namespace?: string } }) =>
    client.create(await client.resourceFor(object), object);
  await make({ apiVersion: "v1", kind: "Namespace", metadata: { name: "apps" } });
  const account = { name: "probe", namespace: "apps" };
  await make({ apiVersion: "v1", kind: "ServiceAccount", metadata: account });
  const group = "rbac.authorization.k8s.io";
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list", "patch"] }];
  await make({ apiVersion: `${group}/v1`, kind: "Role", metadata: account, rules } as never);
  await make({
    apiVersion: `${group}/v1`,
    kind: "RoleBinding",
    metadata: account,
    roleRef: { apiGroup: group, kind: "Role", name: "probe" },
    subjects: [{ kind: "ServiceAccount", ...account }],
  } as never);
});
afterAll(() => cluster.close());

function deploy(name: string, container: object, pod: object = {}): Promise<Deployment> {
  const labels = { app: name };
  return cluster.client.create<Deployment>(DEPLOYMENTS, {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: "apps" },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { serviceAccountName: "probe", containers: [{ name: "main", image, ...container }], ...pod },
      },
    },
  });
}

const podsOf = async (app: string) =>
  (await cluster.client.list<Pod>(PODS, { namespace: "apps", labelSelector: `app=${app}` })).items;
const podWhen = async (app: string, is: (pod: Pod) => boolean) =>
  (
    await eventually(
      () => podsOf(app),
      (pods) => pods.length === 1 && is(pods[0]!),
    )
  )[0]!;
const main = (pod: Pod) => pod.status?.containerStatuses?.[0];

async function logOf(pod: Pod, query: Record<string, string> = {}): Promise<string[]> {
  const path = `/api/v1/namespaces/apps/pods/${pod.metadata.name}/log`;
  const response = await cluster.client.raw({ method: "GET", path, query });
  return (await response.text()).split("\n").filter((line) => line !== "");
}
const messages = async (pod: Pod) => (await logOf(pod)).map((line) => JSON.parse(line).message as string);

describe("a program of ours in a pod of the embedded cluster", () => {
  it("waits for what its environment refers to, and says what is missing", async () => {
    await deploy("probe", {
      command: ["vendor", "probe"],
      env,
      envFrom,
      ports: [
        { name: "web", containerPort: 8000 },
        { name: "health", containerPort: 8080 },
      ],
      readinessProbe: { httpGet: { path: "/readyz", port: "health" }, periodSeconds: 1, failureThreshold: 1 },
    });
    const stuck = await podWhen("probe", (pod) => main(pod)?.state.waiting?.reason === "CreateContainerConfigError");
    expect(main(stuck)?.state.waiting?.message).toBe('configmap "settings" not found');
    const described = async () =>
      (await cluster.client.list(EVENTS, { namespace: "apps" })).items.map((one) => one["message"]);
    await eventually(described, (texts) => texts.includes('Error: configmap "settings" not found'));
  });

  it("has the environment a kubelet would give it, once it is all there", async () => {
    const { client } = cluster;
    const place = { namespace: "apps" };
    const password = Buffer.from("s3cret").toString("base64");
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { ...place, name: "secret" }, data: { password } };
    const settings = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { ...place, name: "settings" },
      data: { greeting: "hi" },
    };
    await client.create(SECRETS, secret);
    await client.create(CONFIG_MAPS, settings);
    const pod = await podWhen("probe", (one) => one.status?.phase === "Running");
    const lines = await eventually(
      () => logOf(pod),
      (all) => all.length >= 3,
    );
    expect(JSON.parse(lines[0]!)).toMatchObject({
      level: "info",
      message: "environment",
      POD_NAME: pod.metadata.name,
      NODENAME: pod.spec.nodeName,
      GREETING: "hi",
      PASSWORD: "s3cret",
      EXPANDED: "hi, hi and $(GREETING)",
    });
  });

  it("asks the API server as its own service account: what no role allows is refused", async () => {
    const pod = await podWhen("probe", (one) => one.status?.phase === "Running");
    const lines = await eventually(
      () => logOf(pod),
      (all) => all.length >= 3,
    );
    expect(JSON.parse(lines[1]!)).toMatchObject({ message: "config maps are readable", found: true });
    expect(JSON.parse(lines[2]!)).toMatchObject({ level: "warn", code: 403 });
    expect(JSON.parse(lines[2]!).message).toContain(
      'User "system:serviceaccount:apps:probe" cannot list resource "secrets"',
    );
  });

  it("is ready when its own health server says so, and its service leads to it only then", async () => {
    const pod = await podWhen("probe", (one) => one.status?.phase === "Running");
    expect(main(pod)?.ready).toBe(false);
    await cluster.client.create(SERVICES, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "probe", namespace: "apps" },
      spec: { selector: { app: "probe" }, ports: [{ port: 80, targetPort: "web" }] },
    });
    const behind = () => cluster.programs.resolveService("apps", "probe", 80);
    expect(behind()).toBeUndefined();
    seen.ready = true;
    await podWhen("probe", (one) => main(one)?.ready === true);
    const { host, port } = behind()!;
    expect(await (await fetch(`http://${host}:${port}/`)).text()).toBe("hello");
    expect(cluster.programs.resolveService("apps", "probe", 81)).toBeUndefined();
    seen.ready = false;
    await podWhen("probe", (one) => main(one)?.ready === false);
    expect(behind()).toBeUndefined();
    seen.ready = true;
  });

  it("killed, it says nothing more; its container exits with 137 and is started again", async () => {
    const before = await podWhen("probe", (one) => main(one)?.ready === true);
    expect(cluster.programs.kill(before.metadata.uid!)).toBe(true);
    const after = await podWhen("probe", (one) => main(one)?.restartCount === 1 && main(one)?.ready === true);
    expect(main(after)?.lastState.terminated).toMatchObject({ exitCode: 137 });
    expect(seen.stops).toBe(0);
  });

  it("deleted, it stops gracefully within its time", async () => {
    const pod = await podWhen("probe", (one) => main(one)?.ready === true);
    await cluster.client.delete(DEPLOYMENTS, { name: "probe", namespace: "apps" });
    await eventually(
      () => podsOf("probe"),
      (pods) => pods.length === 0,
    );
    expect(seen.stops).toBe(1);
    const settings = await cluster.client.get(CONFIG_MAPS, { name: "settings", namespace: "apps" });
    expect(settings["data"]).toMatchObject({ stopped: "yes" });
    expect(cluster.programs.kill(pod.metadata.uid!)).toBe(false);
  });

  it("that fails exits with its code, says why, and backs off", async () => {
    await deploy("crash", { command: ["vendor"], args: ["crash"] });
    const pod = await podWhen("crash", (one) => main(one)?.state.waiting?.reason === "CrashLoopBackOff");
    expect(main(pod)).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 78, reason: "Error" } } });
    const [line] = await logOf(pod, { previous: "true" });
    expect(JSON.parse(line!)).toMatchObject({ level: "error", code: "TEST_CRASH", fix: "do otherwise" });
  });

  it("of another version, or that we do not have, is simulated", async () => {
    await deploy("old", { image: "registry.vendor.io/vendor/vendor:v3.27.5", command: ["vendor", "crash"] });
    await deploy("later", { command: ["vendor", "node"] });
    for (const app of ["old", "later"]) {
      const pod = await podWhen(app, (one) => main(one)?.ready === true);
      expect((await logOf(pod))[0]).toContain("simulated node");
    }
  });

  it("shows flows to who shows a token, as the flow UI, and asks the API server with that token", async () => {
    const readinessProbe = { httpGet: { path: "/readyz", port: 8080 } };
    await deploy("flow-ui", { command: ["vendor", "flow-ui"], ports: [{ containerPort: 8081 }], readinessProbe });
    await cluster.client.create(SERVICES, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "flow-ui", namespace: "apps" },
      spec: { selector: { app: "flow-ui" }, ports: [{ port: 8081 }] },
    });
    await podWhen("flow-ui", (one) => main(one)?.ready === true);
    const { host, port } = cluster.programs.resolveService("apps", "flow-ui", 8081)!;
    const ask = async (path: string, headers: Record<string, string> = {}) => {
      const answer = await fetch(`http://${host}:${port}${path}`, { headers });
      return { status: answer.status, text: await answer.text() };
    };
    expect((await ask("/")).text).toContain("<!doctype html>");
    expect((await ask("/session")).status).toBe(401);
    const asked = await cluster.client.raw({
      ...{ method: "POST", path: "/api/v1/namespaces/apps/serviceaccounts/default/token" },
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} }),
    });
    const { token } = (JSON.parse(await asked.text()) as { status: { token: string } }).status;
    const { status, text } = await ask("/session", { authorization: `Bearer ${token}` });
    expect([status, JSON.parse(text)]).toEqual([
      200,
      expect.objectContaining({ user: "system:serviceaccount:apps:default", signIn: true, wholeCluster: false }),
    ]);
  });
});

describe("the address a program reaches the API server by", () => {
  const endpoint = (host: string, port: number | string) => [
    { name: "ORCHESTRATOR_SERVICE_HOST", value: host },
    { name: "ORCHESTRATOR_SERVICE_PORT", value: String(port) },
  ];

  it("is the one it was told: a wrong one breaks it, the platform's works without a service proxy", async () => {
    const { port } = new URL(cluster.url);
    await deploy("by-cluster-ip", { command: ["vendor", "asking"] });
    await deploy("by-platform", { command: ["vendor", "asking"], env: endpoint("api.programs.internal", port) });
    await deploy("by-typo", { command: ["vendor", "asking"], env: endpoint("api.programs.intrenal", port) });
    await deploy("by-old-port", { command: ["vendor", "asking"], env: endpoint("api.programs.internal", 1) });
    const said = async (app: string, count: number) =>
      await eventually(
        async () => messages(await podWhen(app, (one) => one.status?.phase === "Running")),
        (all) => all.length >= count,
      );
    expect(await said("by-cluster-ip", 1)).toEqual(["reached"]);
    expect(await said("by-platform", 1)).toEqual(["reached"]);
    expect((await said("by-typo", 1))[0]).toContain("its name does not resolve");
    expect((await said("by-old-port", 1))[0]).toContain("connection refused");

    const parked = { spec: { template: { spec: { nodeSelector: { "non-vendor": "true" } } } } };
    const proxy = { name: "kube-proxy", namespace: "kube-system" };
    await cluster.client.patch(await cluster.client.resourceFor({ apiVersion: "apps/v1", kind: "DaemonSet" }), proxy, {
      type: "merge",
      patch: parked,
    });
    expect((await said("by-cluster-ip", 2))[1]).toContain("there is no route to it");
    expect(await said("by-platform", 1)).toEqual(["reached"]);
  });
});
