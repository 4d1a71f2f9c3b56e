import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { Workload } from "../api/workload-objects.ts";
import { CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, EVENTS, NODES } from "../cluster/kinds.ts";
import { storedKind } from "./managed-kinds.ts";
import { applyDefinitions, createEndpointMap, type OperatorLab, operatorLab } from "./testing/operator-lab.ts";

let world: OperatorLab;
afterEach(() => world.stop());

interface Event extends KubeObject {
  involvedObject: { kind: string; name: string };
  type: string;
  reason: string;
}

const NODE_AGENT = { namespace: "vendor-system", name: "vendor-node" };
const INSTALLATION = storedKind("installation");

async function agentEnv(): Promise<Record<string, string | undefined>> {
  const daemonSet = await world.get<Workload>(DAEMON_SETS, NODE_AGENT);
  const env = daemonSet?.spec?.template?.spec?.containers?.[0]?.env ?? [];
  return Object.fromEntries(env.map(({ name, value }) => [name, value]));
}

describe("an installation", () => {
  it("with BPF and the v3 API ends with every part available, and then costs no more writes", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "BPF", serviceProxyManagement: "Enabled" } });
    await world.request("apiServer");
    for (const part of ["network", "apiserver", "ippools", "service-proxy"]) await world.untilStatus(part, "Available");
    for (const part of ["flow-logs", "flow-ui"]) await world.untilStatus(part, "NotInstalled");
    await world.settled();
    const before = world.writes.length;
    // Anything that changes makes the operator look at every part again.
    const patch = { metadata: { labels: { touched: "yes" } } };
    await world.kubectl.patch(NODES, { name: "node-0" }, { type: "merge", patch });
    await world.settled();
    expect(world.writes.slice(before)).toEqual([]);
    expect(world.warnings).toEqual([]);
    // No object was written twice because the first time was not right; what has steps is the switch, finalizers and status.
    const again = world.writes.filter(
      (write, index) => write.startsWith("PATCH") && world.writes.indexOf(write) !== index,
    );
    expect(
      again.filter((write) => !/\/status$|installations\/default$|dataplaneconfigurations|active-operator/.test(write)),
    ).toEqual([]);
  });

  it("that is refused and then corrected has events of both, on the Installation and on the status", async () => {
    world = await operatorLab();
    world.startOperator();
    const pool = (encapsulation: string) => ({ ipPools: [{ cidr: "192.168.0.0/16", encapsulation }] });
    await world.installation({ vendorNetwork: { linuxDataplane: "BPF", ...pool("IPIP") } });
    const events = () =>
      world.kubectl.list<Event>(EVENTS).then(({ items }) =>
        items
          .map(({ involvedObject, type, reason }) => `${involvedObject.kind} ${involvedObject.name} ${type} ${reason}`)
          .filter((event) => / (default|network) \w+ (?!Progressing)/.test(event))
          .sort(),
      );
    await world.until(events, (said) => said.length === 2);
    const patch = { spec: { vendorNetwork: pool("VXLAN") } };
    await world.kubectl.patch(INSTALLATION, { name: "default" }, { type: "merge", patch });
    await world.until(events, (said) => said.length === 4);
    expect(await events()).toEqual([
      "Installation default Normal Ready",
      "Installation default Warning EbpfIpipPool",
      "VendorStatus network Normal Available",
      "VendorStatus network Warning EbpfIpipPool",
    ]);
  });

  it("writes no defaults into the user's spec: what they come to is in status", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "BPF", hostPorts: null } });
    await world.untilStatus("network", "Available");
    const installation = await world.until(
      () => world.get<KubeObject>(INSTALLATION, { name: "default" }),
      (object) => (object?.["status"] as { version?: string })?.version !== undefined,
    );
    expect(installation?.["spec"]).toEqual({
      variant: "OpenSource",
      vendorNetwork: { linuxDataplane: "BPF", hostPorts: null },
    });
    const status = installation?.["status"] as {
      version: string;
      variant: string;
      computed: { vendorNetwork: object };
    };
    expect(status).toMatchObject({ version: "v3.31.3", variant: "OpenSource" });
    expect(status.computed.vendorNetwork).toMatchObject({
      linuxDataplane: "BPF",
      ipPools: [{ cidr: "192.168.0.0/16" }],
    });
  });

  it("waits for the definitions, and says so, instead of crashing", async () => {
    world = await operatorLab({ definitions: false });
    const operator = world.startOperator();
    const url = await operator.url();
    const answer = await world.until(
      async () => (await fetch(`${url}/readyz`)).text(),
      (text) => text.includes("waiting"),
    );
    expect(answer).toContain("waiting for CRDs: installations.operator.vendor.io");
    await applyDefinitions(world.kubectl);
    await world.installation();
    await world.untilStatus("network", "Available");
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect((await fetch(`${url}/metrics`)).status).toBe(404);
  });

  it("has metrics on the port that its environment asks for", async () => {
    world = await operatorLab();
    const operator = world.startOperator({ env: { METRICS_PORT: "9441" } });
    await world.installation();
    await world.untilStatus("network", "Available");
    const url = operator.urlOf(9441);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("vendor_operator_leader 1");
  });

  it("gives the API server's address to every pod, rolls them when it changes, and takes it back when the map goes", async () => {
    world = await operatorLab({ endpoint: "none" });
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "Nftables" } });
    await world.untilStatus("network", "Available");
    expect(await agentEnv()).not.toHaveProperty("ORCHESTRATOR_SERVICE_HOST");
    await createEndpointMap(world.kubectl);
    await world.until(agentEnv, (env) => env["ORCHESTRATOR_SERVICE_HOST"] === "api.demo.internal");
    const map = { namespace: "vendor-operator", name: "orchestrator-services-endpoint" };
    const patch = { data: { ORCHESTRATOR_SERVICE_HOST: "other.demo.internal" } };
    await world.kubectl.patch(CONFIG_MAPS, map, { type: "merge", patch });
    await world.until(agentEnv, (env) => env["ORCHESTRATOR_SERVICE_HOST"] === "other.demo.internal");
    await world.kubectl.patch(CONFIG_MAPS, map, {
      type: "merge",
      patch: { data: { ORCHESTRATOR_SERVICE_PORT: null } },
    });
    const status = await world.untilStatus("network", "Degraded", "EndpointKeyMissing");
    expect(status.message).toContain("The API endpoint ConfigMap lacks ORCHESTRATOR_SERVICE_PORT.");
    await world.kubectl.delete(CONFIG_MAPS, map);
    await world.until(agentEnv, (env) => !("ORCHESTRATOR_SERVICE_HOST" in env));
    await world.untilStatus("network", "Available");
  });

  it("carries the operator's own DNS configuration to the node pods", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation();
    await world.untilStatus("network", "Available");
    const patch = { spec: { template: { spec: { dnsConfig: { nameservers: ["169.254.169.253"] } } } } };
    const deployment = { namespace: "vendor-operator", name: "vendor-operator" };
    await world.kubectl.patch(DEPLOYMENTS, deployment, { type: "merge", patch });
    await world.until(
      () => world.get<Workload>(DAEMON_SETS, NODE_AGENT),
      (agent) => JSON.stringify(agent?.spec?.template?.spec?.dnsConfig) === '{"nameservers":["169.254.169.253"]}',
    );
  });

  it("puts back what somebody changed, says who and when, and leaves alone what they added", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation();
    await world.untilStatus("network", "Available");
    const container = { name: "vendor-node", image: "registry.example/mine:1" };
    const patch = {
      metadata: { labels: { team: "blue" } },
      spec: { template: { spec: { containers: [container] } } },
    };
    await world.kubectl.patch(DAEMON_SETS, NODE_AGENT, { type: "strategic", patch }, { fieldManager: "kubectl-edit" });
    const status = await world.until(
      () => world.statusOf("network"),
      (seen) => seen?.available === true && seen.message.includes("Drift reverted"),
    );
    expect(status?.message).toMatch(
      /Drift reverted: DaemonSet vendor-system\/vendor-node spec\.template\.spec\.containers\[name=vendor-node\]\.image, changed by kubectl-edit at \d{4}-/,
    );
    const agent = await world.get<Workload>(DAEMON_SETS, NODE_AGENT);
    expect(agent?.metadata.labels?.["team"]).toBe("blue");
    expect(JSON.stringify(agent)).not.toContain("registry.example/mine");
  });

  it("leaves an object alone while it is annotated so, and names it; the others it maintains", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation();
    await world.untilStatus("network", "Available");
    const annotated = (ignore: string | null) => ({ "unsupported.operator.vendor.io/ignore": ignore });
    const by = { fieldManager: "kubectl-edit" };
    const image = { template: { spec: { containers: [{ name: "vendor-node", image: "registry.example/mine:1" }] } } };
    const patch = { metadata: { annotations: annotated("true") }, spec: image };
    await world.kubectl.patch(DAEMON_SETS, NODE_AGENT, { type: "strategic", patch }, by);
    const said = /Left as it is, because of its annotation: DaemonSet vendor-system\/vendor-node\./;
    const message = () => world.statusOf("network").then((status) => status?.message ?? "");
    await world.until(message, (text) => said.test(text));
    const controllers = { namespace: "vendor-system", name: "vendor-kube-controllers" };
    await world.kubectl.patch(DEPLOYMENTS, controllers, { type: "merge", patch: { spec: { replicas: 0 } } }, by);
    await world.until(
      () => world.get<Workload>(DEPLOYMENTS, controllers),
      (deployment) => deployment?.spec?.replicas !== 0,
    );
    const agent = () => world.get<Workload>(DAEMON_SETS, NODE_AGENT);
    expect(JSON.stringify(await agent())).toContain("registry.example/mine");

    await world.kubectl.patch(DAEMON_SETS, NODE_AGENT, {
      ...{ type: "merge", patch: { metadata: { annotations: annotated(null) } } },
    });
    await world.until(agent, (daemonSet) => !JSON.stringify(daemonSet).includes("registry.example/mine"));
    await world.until(message, (text) => text !== "" && !said.test(text));
  });

  it("names the pod, the node and the next command when its agents do not start", async () => {
    world = await operatorLab({ nodes: 1 });
    world.startOperator();
    await world.installation();
    await world.untilStatus("network", "Available");
    // Nothing in this small cluster makes pods fail, so the daemon set says less than it should and its pod tells why.
    const pods = { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };
    const [pod] = (await world.kubectl.list(pods, { namespace: "vendor-system" })).items;
    const waiting = { waiting: { reason: "ImagePullBackOff", message: "no such image" } };
    const patch = {
      status: {
        containerStatuses: [{ name: "main", image: "x", imageID: "", ready: false, restartCount: 0, state: waiting }],
      },
    };
    await world.kubectl.patch(pods, pod?.metadata ?? { name: "" }, { type: "merge", patch }, { subresource: "status" });
    const broken = { status: { numberAvailable: 0 } };
    await world.until(
      async () => {
        await world.kubectl.patch(DAEMON_SETS, NODE_AGENT, { type: "merge", patch: broken }, { subresource: "status" });
        return world.statusOf("network");
      },
      (status) =>
        status?.degraded === true &&
        status.message.includes("on node node-0 container main: ImagePullBackOff, no such image"),
    );
  });

  it("adds flow logs and the page when they are asked for, and takes away what each brought", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation();
    await world.request("flowUI");
    await world.untilStatus("flow-ui", "Degraded", "FlowUiNeedsLogs");
    await world.request("flowLogs");
    await world.untilStatus("flow-logs", "Available");
    await world.untilStatus("flow-ui", "Available");
    // What vendor-flow-logs says of exporting, once it has failed for longer than a collector takes to start.
    const failing = {
      failure: "the collector answered 503",
      failingSince: "2026-01-01T00:00:00.000Z",
      waiting: 7,
      dropped: 2,
    };
    const patch = { status: { export: failing } };
    await world.kubectl.patch(
      storedKind("flowLogs"),
      { name: "default" },
      { type: "merge", patch },
      { subresource: "status" },
    );
    const status = await world.untilStatus("flow-logs", "Degraded", "FlowExportFailing");
    expect(status.message).toContain("the collector answered 503. 7 wait, and 2 are lost.");
    // And of its volume: nothing is acknowledged until it can be written.
    const full = { failure: "ENOSPC: no space left on device", failingSince: "2026-01-01T00:00:00.000Z" };
    await world.kubectl.patch(
      storedKind("flowLogs"),
      { name: "default" },
      { type: "merge", patch: { status: { disk: full } } },
      { subresource: "status" },
    );
    const stuck = await world.untilStatus("flow-logs", "Degraded", "FlowDiskFailing");
    expect(stuck.message).toContain("no space left on device. Nodes keep them meanwhile.");
    const names = async () =>
      (await world.kubectl.list(DEPLOYMENTS, { namespace: "vendor-system" })).items.map(
        ({ metadata }) => metadata.name,
      );
    expect(await names()).toEqual(expect.arrayContaining(["vendor-flow-logs", "vendor-flow-ui"]));
    await world.kubectl.delete(storedKind("flowUI"), { name: "default" });
    await world.kubectl.delete(storedKind("flowLogs"), { name: "default" });
    for (const part of ["flow-logs", "flow-ui"]) await world.untilStatus(part, "NotInstalled");
    expect(await names()).toEqual(["vendor-kube-controllers"]);
  });
});
