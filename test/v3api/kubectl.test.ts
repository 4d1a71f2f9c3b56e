import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findKubectls, type Kubectl, openKubectl } from "../support/kubectl.ts";
import { startV3Api, type V3Api } from "../support/v3-api.ts";

/** The v3 API with kubectl, through the main API server, as people use it. */

const kubectls = findKubectls();

let api: V3Api;
beforeAll(async () => {
  api = await startV3Api();
});
afterAll(() => api.close());

const WEB = `apiVersion: vendor.io/v3
kind: NetworkPolicy
metadata: { name: web, namespace: default }
spec:
  order: 10
  selector: app == "web"
  ingress:
    - action: Allow
      protocol: TCP
      destination: { ports: [80] }
`;

const json = (kind: string, name: string, spec: object) =>
  JSON.stringify({ apiVersion: "vendor.io/v3", kind, metadata: { name }, spec });

if (kubectls.length === 0) it("kubectl drives the v3 API", ({ skip }) => skip("needs kubectl"));

describe.each(kubectls)("kubectl $version", (program) => {
  let kubectl: Kubectl;
  beforeAll(() => {
    const cluster = { name: "c", cluster: { server: api.url } };
    const context = { name: "c", context: { cluster: "c", user: "u" } };
    const users = [{ name: "u", user: {} }];
    const config = { apiVersion: "v1", kind: "Config", clusters: [cluster], contexts: [context], users };
    kubectl = openKubectl(program, JSON.stringify({ ...config, "current-context": "c" }));
  });
  afterAll(() => kubectl.close());

  const policies = "networkpolicies.v3.vendor.io";

  it("applies a policy, shows it, changes it, labels it and deletes it", async () => {
    const file = kubectl.file("web.yaml", WEB);
    expect(await kubectl.ok("apply", "-f", file)).toContain("networkpolicy.vendor.io/web created");
    expect(await kubectl.ok("apply", "-f", file)).toContain("networkpolicy.vendor.io/web unchanged");
    const table = (await kubectl.ok("get", policies)).split("\n");
    expect(table[0]!.split(/\s+/)).toEqual(["NAME", "TIER", "ORDER", "SELECTOR", "AGE"]);
    expect(table[1]).toMatch(/^web\s+default\s+10\s+app == "web"\s+\d+s$/);
    await kubectl.ok("patch", policies, "web", "--type=merge", "-p", '{"spec":{"order":20}}');
    await kubectl.ok("label", policies, "web", "team=red");
    expect(await kubectl.ok("get", policies, "-l", "team=red", "-o", "name")).toBe("networkpolicy.vendor.io/web\n");
    expect(await kubectl.ok("get", policies, "web", "-o", "jsonpath={.spec.order} {.spec.types}")).toBe(
      '20 ["Ingress"]',
    );
    expect(await kubectl.ok("describe", policies, "web")).toContain("API Version:  vendor.io/v3");
    expect(await kubectl.ok("delete", policies, "web")).toContain('"web" deleted');
    expect(await kubectl.refused("get", policies, "web")).toContain('networkpolicies.vendor.io "web" not found');
  });

  it("prints what is stored though the cluster does not do it", async () => {
    const dataplane = kubectl.file("dataplane.json", json("DataplaneConfiguration", "default", { bpfEnabled: true }));
    await kubectl.ok("apply", "-f", dataplane);
    const policy = json("GlobalNetworkPolicy", "logs", { ingress: [{ action: "Log" }] });
    const { stderr } = await kubectl.run(["apply", "-f", kubectl.file("logs.json", policy)]);
    expect(stderr).toContain("Warning: spec.ingress[0].action: The eBPF data plane writes no lines for this Log rule.");
    await kubectl.ok("delete", "globalnetworkpolicies", "logs");
    await kubectl.ok("delete", "-f", dataplane);
  });

  it("applies on the server, and names who owns what is fought over", async () => {
    const tier = (order: number) => kubectl.file("tier.json", json("Tier", "ops", { order }));
    await kubectl.ok("apply", "--server-side", "--field-manager=red", "-f", tier(10));
    await kubectl.ok("apply", "--server-side", "--field-manager=red", "-f", tier(11));
    const quarrel = await kubectl.refused("apply", "--server-side", "--field-manager=blue", "-f", tier(12));
    expect(quarrel).toContain('conflict with "red"');
    await kubectl.ok("apply", "--server-side", "--force-conflicts", "--field-manager=blue", "-f", tier(12));
    expect(await kubectl.ok("get", "tiers", "ops", "-o", "jsonpath={.apiVersion} {.spec.order}")).toBe(
      "vendor.io/v3 12",
    );
    await kubectl.ok("delete", "tier", "ops");
  });

  it("means this API by a resource's plain name and by its short name", async () => {
    await kubectl.ok("create", "-f", kubectl.file("pool.json", json("IPPool", "p", { cidr: "10.7.0.0/16" })));
    expect(await kubectl.ok("get", "pool", "-o", "name")).toBe("ippool.vendor.io/p\n");
    expect(await kubectl.ok("get", "ippools")).toMatch(
      /^NAME\s+CIDR\s+VXLAN\s+NAT\s+DISABLED\s+AGE\np\s+10.7.0.0\/16\s+Never/,
    );
    expect(
      await kubectl.refused("patch", "ippool", "p", "--type=merge", "-p", '{"spec":{"cidr":"10.8.0.0/16"}}'),
    ).toContain('spec.cidr: Invalid value: "10.8.0.0/16": field is immutable');
    await kubectl.ok("delete", "ippool", "p");
  });

  it("explains it", async () => {
    const explained = await kubectl.ok("explain", "networkpolicies.spec.ingress", "--api-version=vendor.io/v3");
    expect(explained).toContain("VERSION:");
    expect(explained).toMatch(/Rules for traffic to the endpoints/);
  });

  it("says what is wrong with a file before and after it is sent", async () => {
    const bad = WEB.replace('app == "web"', "app is web");
    const said = await kubectl.refused("apply", "-f", kubectl.file("bad.yaml", bad));
    expect(said).toContain('The NetworkPolicy "web" is invalid: spec.selector: Invalid value: "app is web"');
    const odd = WEB.replace("selector:", "selectors:");
    expect(await kubectl.refused("apply", "-f", kubectl.file("odd.yaml", odd))).toMatch(
      /unknown field "(spec\.)?selectors"/,
    );
  });

  it("watches host endpoints come and go", async () => {
    const watching = kubectl.start("get", "hostendpoints.v3.vendor.io", "--watch", "--output-watch-events");
    const endpoint = json("HostEndpoint", "eth", { node: "n", interfaceName: "eth0" });
    await kubectl.ok("create", "-f", kubectl.file("hep.json", endpoint));
    expect(await watching.line(/eth/)).toMatch(/^ADDED\s+eth\s+n\s+eth0/);
    await kubectl.ok("label", "hostendpoint", "eth", "a=b");
    await watching.line(/^MODIFIED\s+eth/);
    await kubectl.ok("delete", "hostendpoint", "eth");
    await watching.line(/^DELETED\s+eth/);
    await watching.stop();
  });
});
