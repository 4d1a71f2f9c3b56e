import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { NODE_IMAGES } from "../api/node-images.ts";
import type { KubeObject } from "../api/object.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../api/tables/cluster-kinds.ts";
import { ENDPOINT_RULES, type EndpointRule } from "../api/tables/endpoint-rules.ts";
import { SERVICE_PROXY } from "../api/tables/kube-proxy.ts";
import { parseOperatingSystem } from "../api/tables/operating-system.ts";
import { kernelVerdict, supportedArchitecture } from "../api/tables/platform-limits.ts";
import { contains, parseAddress, parseCidr } from "../kit/ip.ts";
import { type PlatformProfile, type PlatformProfileOptions, platformProfile } from "./platform-profile.ts";
import { nodeObject } from "./runtime/node-object.ts";
import { type BareServer, bareServer } from "./testing/bare-server.ts";

const KINDS = Object.keys(CLUSTER_KINDS) as ClusterKind[];
const asked: PlatformProfileOptions = {
  name: "demo",
  nodes: 3,
  proxy: undefined,
  oldNodes: 0,
  windowsNodes: 0,
  apiAddress: { host: "127.0.0.1", port: 41443 },
  dualStack: false,
};

const named = (objects: KubeObject[], kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name);
const dataOf = (object: KubeObject | undefined) => object?.["data"] as Record<string, string>;

/** The mode as each platform writes it down: in a config map, on a command line, or nowhere because there is no proxy. */
function writtenMode(objects: KubeObject[]): string {
  const proxy = named(objects, "DaemonSet", "kube-proxy");
  if (!proxy) return "none";
  const flag = /--proxy-mode=(\w+)/.exec(JSON.stringify(proxy));
  if (flag) return flag[1] as string;
  const text = dataOf(named(objects, "ConfigMap", "kube-proxy-config"))?.["config"];
  const settings = text ?? (dataOf(named(objects, "ConfigMap", "kube-proxy"))["config.conf"] as string);
  return (parse(settings) as { mode: string }).mode;
}

describe.each(KINDS)("a cluster of kind %s", (kind) => {
  const personality: PlatformProfile = platformProfile(kind);
  let server: BareServer;
  beforeEach(async () => {
    server = await bareServer();
  });
  afterEach(() => server.close());

  it("is accepted whole by an API server, in every mode its proxy may have", async () => {
    for (const proxy of personality.proxies) {
      for (const object of personality.objects({ ...asked, proxy, dualStack: true })) {
        const resource = await server.client.resourceFor(object);
        await server.client.apply(resource, object, { force: true, fieldValidation: "Strict" });
      }
    }
  });

  it("has nodes the API server accepts, with the last of them too old and the very last on Windows", async () => {
    const specs = personality.nodes({ ...asked, nodes: 8, oldNodes: 5, windowsNodes: 1, dualStack: true });
    for (const spec of specs) {
      const node = nodeObject(spec, true, Date.now());
      await server.client.create(await server.client.resourceFor(node), node, { fieldValidation: "Strict" });
    }
    expect(new Set(specs.map(({ name }) => name)).size).toBe(8);
    const fit = specs.map(
      (spec) =>
        spec.operatingSystem !== "windows" && supportedArchitecture(spec.architecture) && kernelVerdict(spec, kind).ok,
    );
    expect(fit).toEqual([true, true, false, false, false, false, false, false]);
  });

  it("says its proxy's mode where the platform says it, and offers the modes the table knows", () => {
    for (const proxy of personality.proxies) {
      expect(writtenMode(personality.objects({ ...asked, proxy }))).toBe(proxy);
    }
    const { atInstall, afterInstall } = SERVICE_PROXY[kind];
    const canDoWithout = personality.proxies.includes("none");
    expect(canDoWithout).toBe(atInstall.action !== "impossible");
    const canHaveOne = personality.proxies.some((mode) => mode !== "none");
    expect(canHaveOne).toBe(afterInstall.action !== "none");
    if ((afterInstall.first as readonly string[]).includes("leave-ipvs-mode"))
      expect(personality.proxies).toContain("ipvs");
  });

  it("tells an API address that the table's rule for it accepts, and has a certificate for it", () => {
    const rule: EndpointRule = ENDPOINT_RULES[kind];
    const { host, port } = personality.endpoint(asked);
    if (rule.host) expect(host).toMatch(rule.host.pattern);
    if (rule.port) expect(String(port)).toBe(rule.port);
    const names = personality.serverNames(asked);
    expect(names).toContain(host);
    expect(names).toContain("kubernetes.default.svc");
    const service = parseCidr(personality.serviceCidrs[0] as string)!;
    expect(names.some((name) => contains(service, parseAddress(name) ?? { family: service.family, value: -1n }))).toBe(
      true,
    );
  });

  it("gives nodes, pods and services ranges that do not meet, and every node its own part", () => {
    for (const nodes of [1, 3, 300, 5000]) {
      const specs = personality.nodes({ ...asked, nodes });
      const ranges = specs.map(({ podCIDRs }) => podCIDRs[0] as string);
      expect(new Set(ranges).size).toBe(nodes);
      const pods = parseCidr(personality.podCidrs[0] as string)!;
      const services = parseCidr(personality.serviceCidrs[0] as string)!;
      const astray = specs.filter(({ internalIPs, podCIDRs }) => {
        const address = parseAddress(internalIPs[0] as string)!;
        const range = parseCidr(podCIDRs[0] as string)!;
        return (
          contains(pods, address) || contains(services, address) || !contains(pods, { ...range, value: range.base })
        );
      });
      expect(astray).toEqual([]);
    }
  });
});

describe("what sets platforms apart", () => {
  const objects = (kind: ClusterKind) => platformProfile(kind).objects(asked);

  it("lets the operator recognise each where it can be recognised", () => {
    expect(named(objects("generic"), "ConfigMap", "kubeadm-config")).toBeDefined();
    expect(dataOf(named(objects("iac"), "ConfigMap", "cluster-configuration"))["cluster.yaml"]).toContain(
      "enabled: true",
    );
    expect(named(objects("openshift"), "ClusterVersion", "version")).toBeDefined();
    expect(named(objects("aks"), "DaemonSet", "kube-proxy")?.metadata.labels).toMatchObject({
      "addonmanager.kubernetes.io/mode": "Reconcile",
    });
    expect(named(objects("eks"), "ConfigMap", "aws-auth")).toBeDefined();
    expect(named(objects("eks"), "DaemonSet", "aws-node")).toBeDefined();
    expect(named(objects("eks"), "Service", "kube-dns")?.metadata.labels).toHaveProperty("eks.amazonaws.com/component");
    const [manager] = platformProfile("mke").nodes(asked);
    expect(Object.keys(manager?.labels ?? {}).some((label) => label.startsWith("com.docker.ucp"))).toBe(true);
  });

  it("writes down the address people are sent to", () => {
    const bootstrap = dataOf(named(objects("generic"), "ConfigMap", "kubeadm-config"))[
      "ClusterConfiguration"
    ] as string;
    expect(parse(bootstrap)).toMatchObject({
      controlPlaneEndpoint: "api.demo.internal:41443",
      networking: { podSubnet: "10.244.0.0/16" },
    });
    expect(dataOf(named(objects("aks"), "ConfigMap", "cluster-info"))["kubeconfig"]).toMatch(
      /https:\/\/demo-dns.*:443\n/,
    );
    expect(platformProfile("iac").endpoint(asked).host).toBe("api.internal.demo");
    expect(dataOf(named(objects("mke"), "ConfigMap", "com.docker.ucp.config"))["ucp-config.toml"]).toContain(
      'kubernetes_api_proxy = "proxy.local:6444"',
    );
  });

  it("sends names to the link-local name server where the cloud has one", () => {
    for (const kind of KINDS) {
      const row: { title: string; operatorNameserver?: string } = CLUSTER_KINDS[kind];
      const corefile = dataOf(named(objects(kind), "ConfigMap", "coredns"))["Corefile"];
      expect(corefile).toContain(`forward . ${row.operatorNameserver ?? "/etc/resolv.conf"}`);
    }
  });

  it("has a node of every managed image the limits speak of, with a kernel that fits what they say", () => {
    for (const row of NODE_IMAGES.filter(({ recentEnough }) => recentEnough)) {
      const node = platformProfile(row.kind)
        .nodes(asked)
        .find(({ osImage }) => {
          const { family, release } = parseOperatingSystem(osImage);
          return family === row.family && (!row.release || release?.major === row.release.major);
        });
      expect(node && kernelVerdict(node, row.kind).ok, row.because).toBe(true);
    }
  });

  it("keeps ordinary pods off the control plane, unless it is all there is", () => {
    const taints = (nodes: number) => platformProfile("generic").nodes({ ...asked, nodes })[0]?.taints;
    expect(taints(3)).toEqual([{ key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" }]);
    expect(taints(1)).toBeUndefined();
  });
});

describe("what cannot be had", () => {
  const refusal = (act: () => unknown) => {
    try {
      act();
    } catch (error) {
      return error;
    }
    return undefined;
  };

  it("refuses a kind that does not exist, and names those that do", () => {
    expect(refusal(() => platformProfile("gke"))).toMatchObject({
      code: "CLUSTER_KIND_UNKNOWN",
      message: '"gke" is not a kind of cluster; the kinds are generic, iac, openshift, aks, eks, mke',
    });
    expect(refusal(() => platformProfile("toString"))).toMatchObject({ code: "CLUSTER_KIND_UNKNOWN" });
  });

  it("refuses to do without a proxy where a manager brings it back, and to have one where there is none", () => {
    expect(refusal(() => platformProfile("aks").objects({ ...asked, proxy: "none" }))).toMatchObject({
      code: "PROXY_NOT_OFFERED",
    });
    expect(refusal(() => platformProfile("openshift").objects({ ...asked, proxy: "ipvs" }))).toMatchObject({
      code: "PROXY_NOT_OFFERED",
      message: 'kube-proxy of a cluster of kind openshift cannot be "ipvs"; it can be none',
    });
  });

  it("refuses a cluster of Windows nodes alone", () => {
    const nodes = (more: Partial<PlatformProfileOptions>) => () => platformProfile("eks").nodes({ ...asked, ...more });
    expect(refusal(nodes({ nodes: 2, windowsNodes: 2 }))).toMatchObject({ code: "TOO_FEW_NODES" });
    expect(refusal(nodes({ nodes: 2, oldNodes: 3 }))).toMatchObject({ code: "TOO_FEW_NODES" });
    expect(nodes({ nodes: 2, oldNodes: 2 })()).toHaveLength(2);
  });
});
