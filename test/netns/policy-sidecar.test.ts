import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { networkPolicy } from "../../src/api/resources/network-policy.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { EVENTS, PODS } from "../../src/cluster/kinds.ts";
import { type GrpcClient, grpcClient } from "../../src/kit/grpc/grpc-client.ts";
import { decode } from "../../src/kit/grpc/protobuf.ts";
import { isReady } from "../../src/local/controllers/pod-state.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { AUTHORIZATION_METHODS, CHECK_REQUEST, CHECK_RESPONSE } from "../../src/sidecar/authorization-messages.ts";
import { checkRequest } from "../sidecar/check-requests.ts";
import { inject } from "../sidecar/inject.ts";
import { installNetwork, type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";

const POLICIES = placesOf(networkPolicy, vendorNames).stored;
const PATIENCE_MS = 60_000;
const MAP = parse(readFileSync("manifests/alp/mesh-inject-configmap-1.15.yaml", "utf8")) as KubeObject;
const PROXY = { name: "mesh-proxy", image: "pause" };

describe.skipIf(whyNoRealNodes)(`sidecars of pods${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`, () => {
  let cluster: RealCluster;
  let directory = "";
  const clients: GrpcClient[] = [];
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "sidecars-"));
    cluster = await startReal({ nodes: 1 });
    await installNetwork(cluster, { dataplane: "Nftables", encapsulation: "None", families: [4] });
    const patch = { spec: { policySyncPathPrefix: "/var/run/nodeagent" } };
    await cluster.client.patch(
      placesOf(dataplaneConfiguration, vendorNames).stored,
      { name: "default" },
      { type: "merge", patch },
    );
    for (const name of ["cart", "web"]) await meshed(name);
    await eventually(pods, (all) => all.length === 2 && all.every(isReady), PATIENCE_MS);
  });
  afterAll(async () => {
    for (const client of clients) client.close();
    await cluster?.close();
    rmSync(directory, { recursive: true });
  });

  const pods = async () => (await cluster.client.list<Pod>(PODS, { namespace: "default" })).items;
  const meshed = (name: string, edit: (pod: KubeObject) => KubeObject = (pod) => pod) =>
    cluster.client.create(
      PODS,
      edit(
        inject(MAP, {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name, namespace: "default", labels: { app: name } },
          spec: {
            terminationGracePeriodSeconds: 0,
            automountServiceAccountToken: false,
            containers: [{ name: "main", image: "pause" }, PROXY],
          },
        } as KubeObject),
      ),
    );
  /** As the proxy in the pod asks its sidecar. */
  const proxyOf = async (name: string) => {
    const pod = (await pods()).find(({ metadata }) => metadata.name === name) as Pod;
    const shared = `/var/lib/kubelet/pods/${pod.metadata.uid}/volumes/vendor-policy`;
    const link = join(directory, `${name}-${clients.length}`);
    symlinkSync(cluster.runtime.machine(cluster.nodeNames[0] as string).path(shared), link);
    const client = grpcClient(join(link, "policy.sock"));
    clients.push(client);
    const own = pod.status?.podIPs?.[0]?.ip as string;
    return async (source: string, method: string, path: string) => {
      const request = { http: { method, path } };
      const packet = {
        ipVersion: 4,
        protocol: 6,
        source,
        sourcePort: 40_000,
        destination: own,
        destinationPort: 80,
        request,
      } as const;
      const asked = decode(CHECK_REQUEST, checkRequest(packet));
      const { status } = await client.call(AUTHORIZATION_METHODS[0], [CHECK_REQUEST, CHECK_RESPONSE], asked, 10_000);
      return status?.code === 0 ? "allow" : "deny";
    };
  };
  const addressOf = async (name: string) =>
    (await pods()).find(({ metadata }) => metadata.name === name)?.status?.podIPs?.[0]?.ip as string;
  const policy = (http: object): KubeObject => ({
    apiVersion: `${POLICIES.group}/${POLICIES.version}`,
    kind: POLICIES.kind,
    metadata: { name: "default.cart", namespace: "default" },
    spec: {
      tier: "default",
      selector: "app == 'cart'",
      ingress: [{ action: "Allow", protocol: "TCP", source: { selector: "app == 'web'" }, http }],
    },
  });

  it("a change of policy in the API changes the answers of the pod's own sidecar, and of no other", async () => {
    const [cart, web] = [await proxyOf("cart"), await proxyOf("web")];
    const [fromWeb, outside] = [await addressOf("web"), "198.51.100.7"];
    expect(await cart(outside, "POST", "/orders")).toBe("allow");
    await cluster.client.create(POLICIES, policy({ methods: ["GET"], paths: [{ prefix: "/items" }] }));
    await eventually(
      () => cart(fromWeb, "POST", "/items"),
      (answer) => answer === "deny",
      PATIENCE_MS,
    );
    expect(await cart(fromWeb, "GET", "/items/1")).toBe("allow");
    expect(await cart(outside, "GET", "/items/1")).toBe("deny");
    expect(await web(outside, "POST", "/orders")).toBe("allow");
    const patch = { spec: policy({ methods: ["POST"] })["spec"] };
    await cluster.client.patch(POLICIES, { name: "default.cart", namespace: "default" }, { type: "merge", patch });
    await eventually(
      () => cart(fromWeb, "POST", "/items"),
      (answer) => answer === "allow",
      PATIENCE_MS,
    );
    expect(await cart(fromWeb, "GET", "/items/1")).toBe("deny");
  });

  it("no request is answered wrongly while the agent is killed and comes back", async () => {
    const cart = await proxyOf("cart");
    const fromWeb = await addressOf("web");
    const agents = async () =>
      (await cluster.client.list<Pod>(PODS, { namespace: "vendor-system", labelSelector: "k8s-app=vendor-node" }))
        .items;
    const restarts = ({ status }: Pod) => status?.containerStatuses?.[0]?.restartCount ?? 0;
    const [before] = await agents();
    const answers = new Map<string, number>();
    let isBack = false;
    const asking = (async () => {
      while (!isBack) {
        for (const method of ["GET", "POST"]) {
          const answer = `${method} ${await cart(fromWeb, method, "/items").catch(String)}`;
          answers.set(answer, (answers.get(answer) ?? 0) + 1);
        }
      }
    })();
    expect(cluster.runtime.kill(before?.metadata.uid ?? "")).toBe(true);
    await eventually(
      agents,
      ([agent]) => agent !== undefined && isReady(agent) && restarts(agent) > restarts(before as Pod),
      PATIENCE_MS,
    ).finally(() => {
      isBack = true;
    });
    await asking;
    expect([...answers.keys()].sort()).toEqual(["GET deny", "POST allow"]);
    // The new agent serves the volumes that the old one had made.
    const patch = { spec: policy({ methods: ["GET"] })["spec"] };
    await cluster.client.patch(POLICIES, { name: "default.cart", namespace: "default" }, { type: "merge", patch });
    await eventually(
      () => cart(fromWeb, "GET", "/items"),
      (answer) => answer === "allow",
      PATIENCE_MS,
    );
  });

  it("a pod that could write into its volume does not start, and says why", async () => {
    await meshed(
      "writer",
      (pod) => JSON.parse(JSON.stringify(pod).replace('"readOnly":true}}', '"readOnly":false}}')) as KubeObject,
    );
    const events = await eventually(
      async () => JSON.stringify((await cluster.client.list(EVENTS, { namespace: "default" })).items),
      (all) => all.includes("csi.readOnly: true"),
      PATIENCE_MS,
    );
    expect(events).toContain("MountVolume.SetUp failed");
    await cluster.client.delete(PODS, { name: "writer", namespace: "default" });
  });
});
