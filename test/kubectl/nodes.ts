import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

const NODE = "story-worker-1";
/** So many that each node gets some, whatever the chapters before have left on it. */
const COPIES = 16;

const podsThere = ["get", "pods", "-n", "moving", `--field-selector=spec.nodeName=${NODE}`, "-o", "name"];

export const nodes: Chapter = {
  title: "taking nodes out of service",
  steps(step) {
    step("describe shows what a node is and carries", async (kubectl) => {
      const described = await kubectl.ok("describe", "node", NODE);
      expect(described).toMatch(/^Roles: +<none>$/m);
      expect(described).toMatch(/^ +Ready +True /m);
      expect(described).toMatch(/^ +Kernel Version: +\d/m);
      expect(described).toMatch(/^PodCIDR: +10\.244\.\d+\.0\/24$/m);
      expect(described).toMatch(/^ +kube-system +kube-proxy-/m);
    });

    step("a cordoned node takes no new pods", async (kubectl) => {
      await kubectl.ok("create", "namespace", "moving");
      expect(await kubectl.ok("cordon", NODE)).toBe(`node/${NODE} cordoned\n`);
      expect(await kubectl.ok("cordon", NODE)).toBe(`node/${NODE} already cordoned\n`);
      expect(await kubectl.ok("get", "node", NODE, "--no-headers")).toMatch(/ Ready,SchedulingDisabled /);
      await kubectl.ok("-n", "moving", "create", "deployment", "web", "--image=shop/web:1", `--replicas=${COPIES}`);
      await kubectl.ok("-n", "moving", "rollout", "status", "deployment/web", "--timeout=20s");
      expect(await kubectl.ok(...podsThere)).toBe("");
      expect(await kubectl.ok("uncordon", NODE)).toBe(`node/${NODE} uncordoned\n`);
    });

    step("drain moves everything but daemon sets away", async (kubectl) => {
      await kubectl.ok("-n", "moving", "rollout", "restart", "deployment/web");
      await kubectl.ok("-n", "moving", "rollout", "status", "deployment/web", "--timeout=20s");
      expect(await kubectl.until(podsThere, /pod\//)).toContain("pod/web-");
      const hesitant = await kubectl.refused("drain", NODE);
      expect(hesitant).toContain("cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)");
      const drained = await kubectl.ok("drain", NODE, "--ignore-daemonsets", "--force", "--timeout=20s");
      expect(drained).toMatch(/node\/story-worker-1 (drained|evicted)\n$/);
      expect(await kubectl.ok(...podsThere)).toBe("");
      const proxies = ["get", "pods", "-n", "kube-system", `--field-selector=spec.nodeName=${NODE}`, "-o", "name"];
      expect(await kubectl.ok(...proxies)).toMatch(/pod\/kube-proxy-/);
      await kubectl.ok("-n", "moving", "rollout", "status", "deployment/web", "--timeout=20s");
      await kubectl.ok("uncordon", NODE);
    });

    step("a disruption budget holds a drain back", async (kubectl) => {
      const budget = {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "web", namespace: "moving" },
        spec: { minAvailable: COPIES, selector: { matchLabels: { app: "web" } } },
      };
      await kubectl.ok("create", "-f", kubectl.file("budget.json", JSON.stringify(budget)));
      await kubectl.until(
        ["-n", "moving", "get", "pdb", "web", "--no-headers"],
        new RegExp(`^web +${COPIES} +N/A +0 `),
      );
      const drain = kubectl.start("drain", "story-worker-2", "--ignore-daemonsets", "--force");
      await drain.line(/Cannot evict pod as it would violate the pod's disruption budget/);
      await drain.stop();
      expect(await kubectl.ok("-n", "moving", "get", "deployment", "web", "--no-headers")).toMatch(
        new RegExp(`^web +${COPIES}/${COPIES} `),
      );
      await kubectl.ok("-n", "moving", "delete", "pdb", "web");
      await kubectl.ok("uncordon", "story-worker-2");
    });

    step("taints are put on, refused twice, and taken off", async (kubectl) => {
      expect(await kubectl.ok("taint", "node", NODE, "story=full:NoSchedule")).toBe(`node/${NODE} tainted\n`);
      expect(await kubectl.refused("taint", "node", NODE, "story=full:NoSchedule")).toContain(
        "already has story taint(s) with same effect(s) and --overwrite is false",
      );
      expect(await kubectl.ok("describe", "node", NODE)).toMatch(/^Taints: +story=full:NoSchedule$/m);
      expect(await kubectl.ok("taint", "node", NODE, "story-")).toBe(`node/${NODE} untainted\n`);
    });

    step("NoExecute sends away the pods that do not tolerate it", async (kubectl) => {
      await kubectl.ok("-n", "moving", "rollout", "restart", "deployment/web");
      await kubectl.ok("-n", "moving", "rollout", "status", "deployment/web", "--timeout=20s");
      await kubectl.until(podsThere, /pod\//);
      await kubectl.ok("taint", "node", NODE, "story=out:NoExecute");
      await kubectl.until(podsThere, /^$/);
      await kubectl.ok("-n", "moving", "rollout", "status", "deployment/web", "--timeout=20s");
      await kubectl.ok("taint", "node", NODE, "story:NoExecute-");
    });
  },
};
