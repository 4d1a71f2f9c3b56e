import { describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { ApiRequest, Transport } from "../../src/api/transport.ts";
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  EVENTS,
  NODES,
  ROLE_BINDINGS,
  ROLES,
  SERVICE_ACCOUNTS,
  SERVICES,
} from "../../src/cluster/kinds.ts";
import {
  CONFIGURATIONS,
  DATAPLANE_CONFIGURATIONS,
  HOST_ENDPOINTS,
  IP_POOLS,
  IPAM_BLOCKS,
  typeOf,
} from "../../src/controllers/stored-kinds.ts";
import { kubeControllersRights } from "../../src/operator/render/component-rules.ts";
import { accountWithRights } from "../../src/operator/render/rbac.ts";
import { addNode, type ControllersLab, controllersLab, eventually } from "./controllers-lab.ts";
import { runCopy } from "./run-program.ts";
import { simulatedIpam } from "./simulated-ipam.ts";

/** The program under the account the operator gives it, with those rights and no others. */

const PLACE = { name: vendorNames.workloads.kubeControllers, namespace: vendorNames.namespaces.system };
const KINDS: Record<string, Parameters<ControllersLab["client"]["create"]>[0]> = {
  ServiceAccount: SERVICE_ACCOUNTS,
  ClusterRole: CLUSTER_ROLES,
  ClusterRoleBinding: CLUSTER_ROLE_BINDINGS,
  Role: ROLES,
  RoleBinding: ROLE_BINDINGS,
};

/** Used only in cases no story waits for, or part of a rule that others of the operator share. */
const SELDOM = ["patch pods/status", "update ipamhandles", "update blockaffinities", "patch leases"];

describe("the rights of the controllers", () => {
  it("are enough for all they do, and none is refused", async () => {
    const world = await controllersLab({ authorization: "rbac" });
    const { everywhere, atHome } = kubeControllersRights(vendorNames);
    for (const object of accountWithRights(PLACE, everywhere, atHome)) {
      await world.client.create(KINDS[object.kind] as (typeof KINDS)[string], object);
    }
    const refused: string[] = [];
    const used = new Set<string>();
    const program = run(world, (request, status) => {
      if (status === 403) refused.push(`${request.method} ${request.path}`);
      used.add(verbAndResource(request));
    });

    await everythingHappens(world);
    await program.stop();
    expect(refused).toEqual([]);
    const granted = new Set(
      [...everywhere, ...atHome].flatMap((rule) =>
        rule.resources.flatMap((resource) => rule.verbs.map((verb) => `${verb} ${resource}`)),
      ),
    );
    const missing = [...used].filter((one) => !granted.has(one));
    expect(missing).toEqual([]);
    const unused = [...granted].filter((one) => !used.has(one)).sort();
    expect(unused.filter((one) => !one.startsWith("get ") && !SELDOM.includes(one))).toEqual([]);
    console.log(
      `rights of the controllers: ${used.size} used, ${unused.length} granted and not used: ${unused.join(", ")}`,
    );
    await world.close();
  });
});

/** Each of the controllers makes, changes and removes something, and has something to say. */
async function everythingHappens(world: ControllersLab): Promise<void> {
  const { client } = world;
  const ipam = simulatedIpam(client);
  await addNode(client, "a");
  await addNode(client, "b");
  const own = {
    ...typeOf(HOST_ENDPOINTS),
    metadata: { name: "b-auto-hep" },
    spec: { node: "b", interfaceName: "eth1" },
  };
  await client.create(HOST_ENDPOINTS, own);
  await eventually(
    () => client.list(CONFIGURATIONS),
    ({ items }) => items.length === 1,
  );
  await ipam.addNode("going");
  await ipam.addNode("staying");
  const pod = await ipam.addPod("lost", "staying", { quiet: false, from: "staying" });
  const guest = await ipam.addPod("guest", "staying", { quiet: false, from: "going" });
  const node = { leakGracePeriod: "200ms", reconcilerPeriod: "100ms", hostEndpoint: { autoCreate: "Enabled" } };
  await client.patch(
    CONFIGURATIONS,
    { name: "default" },
    { type: "merge", patch: { spec: { controllers: { node, loadBalancer: {} } } } },
  );
  await eventually(
    async () => (await world.endpoints()).map(({ metadata }) => metadata.name),
    (names) => names.includes("a-auto-hep"),
  );
  await ipam.removePod(pod, "leak");
  await ipam.removeNode("going");
  await client.patch(NODES, { name: "a" }, { type: "merge", patch: { metadata: { labels: { fresh: "yes" } } } });
  await eventually(
    async () => (await world.endpoints()).find(({ metadata }) => metadata.name === "a-auto-hep"),
    (endpoint) => endpoint?.metadata.labels?.["fresh"] === "yes",
  );
  await client.delete(NODES, { name: "a" });
  await eventually(
    async () => (await world.endpoints()).map(({ metadata }) => metadata.name),
    (names) => !names.includes("a-auto-hep") && !names.includes("going-auto-hep"),
  );
  await serviceIsRefused(client);
  await serviceHasAddress(client);
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "bot", namespace: "default" } };
  await client.create(SERVICE_ACCOUNTS, account);
  const hasProfile = async () => (await world.profiles()).some(({ metadata }) => metadata.name === "ksa.default.bot");
  await eventually(hasProfile, (has) => has);
  const label = { metadata: { labels: { robot: "yes" } } };
  await client.patch(SERVICE_ACCOUNTS, { namespace: "default", name: "bot" }, { type: "merge", patch: label });
  await client.delete(SERVICE_ACCOUNTS, { namespace: "default", name: "bot" });
  await eventually(hasProfile, (has) => !has);
  await eventually(
    async () => (await ipam.affinities()).some(({ metadata }) => metadata.name.startsWith("going-")),
    (there) => !there,
  );
  await eventually(
    async () => (await ipam.handles()).map(({ metadata }) => metadata.name),
    (names) => !names.includes(pod.handle) && !names.includes("vxlan-tunnel-addr-going"),
  );
  // The block that lent an address stays until it is given back.
  await ipam.removePod(guest, "half");
  await eventually(
    async () => (await ipam.blocks()).length + (await ipam.handles()).length,
    (left) => left === 2,
  );
  await eventually(
    async () => (await client.list<KubeObject>(EVENTS, { namespace: "default" })).items.length,
    (count) => count > 0,
  );
}

/** Assigned, released, and the block given back with its pool. */
async function serviceHasAddress(client: ControllersLab["client"]): Promise<void> {
  const pool = { name: "services" };
  const spec = { cidr: "203.0.113.0/28", blockSize: 28, allowedUses: ["LoadBalancer"] };
  await client.create(IP_POOLS, { ...typeOf(IP_POOLS), metadata: pool, spec } as KubeObject);
  const ref = { namespace: "default", name: "shop" };
  await client.create(SERVICES, {
    ...{ apiVersion: "v1", kind: "Service", metadata: ref },
    spec: {
      type: "LoadBalancer",
      loadBalancerClass: "vendor",
      clusterIP: "10.96.0.8",
      clusterIPs: ["10.96.0.8"],
      ports: [{ port: 80 }],
    },
  });
  const ingress = async () => JSON.stringify((await client.get<KubeObject>(SERVICES, ref))["status"] ?? {});
  await eventually(ingress, (text) => text.includes("203.0.113."));
  await client.delete(SERVICES, ref);
  await client.delete(IP_POOLS, pool);
  await eventually(
    async () => (await client.list<KubeObject & { spec: { cidr: string } }>(IPAM_BLOCKS)).items,
    (blocks) => blocks.every((block) => !block.spec.cidr.startsWith("203.")),
  );
}

async function serviceIsRefused(client: ControllersLab["client"]): Promise<void> {
  const enabled = { ...typeOf(DATAPLANE_CONFIGURATIONS), metadata: { name: "default" }, spec: { bpfEnabled: true } };
  await client.create(DATAPLANE_CONFIGURATIONS, enabled);
  await client.create(SERVICES, {
    ...{ apiVersion: "v1", kind: "Service", metadata: { name: "claims", namespace: "default" } },
    spec: {
      clusterIP: "10.96.0.9",
      clusterIPs: ["10.96.0.9"],
      ports: [{ port: 80 }],
      externalIPs: ["100.100.100.200"],
    },
  });
  await eventually(
    () => client.get<KubeObject>(SERVICES, { namespace: "default", name: "claims" }),
    (service) => JSON.stringify(service["status"] ?? {}).includes("AddressRefused"),
  );
}

function run({ server }: ControllersLab, seen: (request: ApiRequest, status: number) => void) {
  const inner = server.transport({
    name: `system:serviceaccount:${PLACE.namespace}:${PLACE.name}`,
    groups: ["system:serviceaccounts", `system:serviceaccounts:${PLACE.namespace}`, "system:authenticated"],
  });
  const transport: Transport = {
    async request(request) {
      const response = await inner.request(request);
      seen(request, response.status);
      return response;
    },
    close: () => {},
  };
  return runCopy("one", transport);
}

function verbAndResource({ method, path, query }: ApiRequest): string {
  const parts = path.replace(/^\/api\/v1\/|^\/apis\/[^/]+\/[^/]+\//, "").split("/");
  const [resource, name, subresource] = parts[0] === "namespaces" && parts.length > 2 ? parts.slice(2) : parts;
  const verbs = {
    GET: name ? "get" : query?.["watch"] ? "watch" : "list",
    POST: "create",
    PUT: "update",
    PATCH: "patch",
    DELETE: "delete",
  };
  return `${verbs[method]} ${resource}${subresource ? `/${subresource}` : ""}`;
}
