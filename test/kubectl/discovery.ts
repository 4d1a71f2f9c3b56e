import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

export const discovery: Chapter = {
  title: "looking around a new cluster",
  steps(step) {
    step("both sides say their version", async (kubectl) => {
      const said = JSON.parse(await kubectl.ok("version", "-o", "json"));
      // Some vendors add a word of their own: v1.32.4-dispatcher.
      expect(said.clientVersion.gitVersion.split("-")[0]).toBe(`v${kubectl.version}`);
      expect(said.serverVersion).toMatchObject({ major: "1", gitVersion: expect.stringMatching(/^v1\.\d+\.\d+/) });
    });

    step("cluster-info names the API and the DNS service", async (kubectl) => {
      const info = await kubectl.ok("cluster-info");
      expect(info).toMatch(/Kubernetes control plane.* is running at .*https:\/\/127\.0\.0\.1:\d+/);
      expect(info).toMatch(/CoreDNS.* is running at .*kube-system\/services\/kube-dns:dns\/proxy/);
    });

    step("three nodes are ready", async (kubectl) => {
      expect(await kubectl.ok("wait", "--for=condition=Ready", "node", "--all")).toBe(
        "node/story-control-plane condition met\nnode/story-worker-1 condition met\nnode/story-worker-2 condition met\n",
      );
      const table = await kubectl.ok("get", "nodes", "-o", "wide");
      expect(table).toMatch(/^NAME +STATUS +ROLES +AGE +VERSION +INTERNAL-IP +EXTERNAL-IP +OS-IMAGE +KERNEL-VERSION/);
      expect(table).toMatch(/^story-control-plane +Ready +control-plane .* 172\.18\.0\.2 +<none> +Ubuntu 24\.04/m);
    });

    step("api-versions and api-resources list Kubernetes' own groups", async (kubectl) => {
      const versions = (await kubectl.ok("api-versions")).trim().split("\n");
      expect(versions).toEqual(expect.arrayContaining(["v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1"]));
      expect(versions).toEqual([...versions].sort());
      const resources = await kubectl.ok("api-resources", "-o", "wide");
      expect(resources).toMatch(/^pods +po +v1 +true +Pod /m);
      expect(resources).toMatch(
        /^deployments +deploy +apps\/v1 +true +Deployment .*create.*delete.*list.*patch.*watch/m,
      );
      expect(resources).toMatch(/^customresourcedefinitions +crd,crds +apiextensions\.k8s\.io\/v1 +false /m);
      const clusterWide = await kubectl.ok("api-resources", "--namespaced=false", "-o", "name");
      expect(clusterWide.split("\n")).toEqual(expect.arrayContaining(["nodes", "namespaces"]));
      expect(clusterWide).not.toContain("pods\n");
    });

    step("everything the cluster runs for itself is there", async (kubectl) => {
      const all = await kubectl.ok("get", "all", "-A");
      expect(all).toMatch(/^kube-system +deployment\.apps\/coredns +2\/2 +2 +2 /m);
      expect(all).toMatch(/^kube-system +daemonset\.apps\/kube-proxy +3 +3 +3 +3 +3 +kubernetes\.io\/os=linux /m);
      expect(all).toMatch(/^default +service\/kubernetes +ClusterIP +10\.96\.0\.1 +<none> +443\/TCP/m);
      expect(all).toMatch(/^kube-system +pod\/kube-proxy-\w+ +1\/1 +Running +0 /m);
    });

    step("explain knows Kubernetes' own kinds", async (kubectl) => {
      const explained = await kubectl.ok("explain", "deployment.spec.strategy", "--recursive");
      expect(explained).toMatch(/KIND: +Deployment/);
      expect(explained).toMatch(/rollingUpdate\t.*\n +maxSurge\t.*\n +maxUnavailable\t/);
    });

    step("raw paths answer: health and discovery", async (kubectl) => {
      expect(await kubectl.ok("get", "--raw", "/readyz")).toBe("ok");
      expect(await kubectl.ok("get", "--raw", "/readyz?verbose")).toMatch(
        /^\[\+\]ping ok\n(.*\n)*readyz check passed\n$/,
      );
      expect(JSON.parse(await kubectl.ok("get", "--raw", "/apis"))).toMatchObject({ kind: "APIGroupList" });
    });

    step("what is not there is refused in Kubernetes' words", async (kubectl) => {
      expect(await kubectl.refused("get", "pod", "nobody")).toBe(
        'Error from server (NotFound): pods "nobody" not found\n',
      );
      expect(await kubectl.refused("get", "sandwiches")).toBe(
        'error: the server doesn\'t have a resource type "sandwiches"\n',
      );
      // Nothing runs on paper nodes, so there is nothing to measure; a real cluster without a metrics server says the same.
      expect(await kubectl.refused("top", "nodes")).toBe("error: Metrics API not available\n");
    });

    step("a proxy on this machine carries plain HTTP to the API", async (kubectl) => {
      const proxy = kubectl.start("proxy", "--port=0");
      const line = await proxy.line(/Starting to serve on/);
      const answer = await fetch(`http://${line.split(" ").at(-1)}/api/v1/namespaces/default`);
      expect(await answer.json()).toMatchObject({ kind: "Namespace", metadata: { name: "default" } });
      await proxy.stop();
    });
  },
};
