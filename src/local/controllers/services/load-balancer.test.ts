import { afterEach, describe, expect, it } from "vitest";
import { SERVICES } from "../../../cluster/kinds.ts";
import { type SmallCluster, smallCluster } from "../testing/small-cluster.ts";
import type { Service } from "../workload-types.ts";

function service(name: string, type: Service["spec"]["type"]): Service {
  const metadata = { name, namespace: "default" };
  return { apiVersion: "v1", kind: "Service", metadata, spec: { type, ports: [{ port: 80 }] } };
}

describe("a load balancer service", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());
  const ingress = ({ status }: Service) => status?.loadBalancer?.ingress;

  it("gets an address of the cloud's range, keeps it, and gives it back", async () => {
    // Two usable addresses: the third service must wait for one of them.
    cluster = await smallCluster({ nodes: 0, loadBalancer: { range: "203.0.113.0/30" } });
    for (const name of ["a", "b", "c"]) await cluster.client.create(SERVICES, service(name, "LoadBalancer"));
    const ref = (name: string) => ({ name, namespace: "default" });
    const first = await cluster.until<Service>(SERVICES, ref("a"), (seen) => ingress(seen)?.length === 1);
    expect(ingress(first)).toEqual([{ ip: "203.0.113.1", ipMode: "VIP" }]);
    await cluster.until<Service>(SERVICES, ref("b"), (seen) => ingress(seen)?.[0]?.ip === "203.0.113.2");
    await cluster.client.delete(SERVICES, ref("a"));
    const next = await cluster.until<Service>(SERVICES, ref("c"), (seen) => ingress(seen)?.length === 1);
    expect(ingress(next)?.[0]?.ip).toBe("203.0.113.1");
  });

  it("that becomes a plain one loses it", async () => {
    cluster = await smallCluster({ nodes: 0, loadBalancer: { range: "203.0.113.0/24" } });
    const ref = { name: "a", namespace: "default" };
    await cluster.client.create(SERVICES, service("a", "LoadBalancer"));
    await cluster.until<Service>(SERVICES, ref, (seen) => ingress(seen)?.length === 1);
    await cluster.client.patch(SERVICES, ref, { type: "merge", patch: { spec: { type: "ClusterIP" } } });
    await cluster.until<Service>(SERVICES, ref, (seen) => ingress(seen) === undefined);
  });
});
