import { expect } from "vitest";
import type { Kubectl } from "../support/kubectl.ts";
import type { Chapter } from "./scenario.ts";

const NODE_AGENT = `
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
spec:
  selector:
    matchLabels: { app: agent }
  template:
    metadata:
      labels: { app: agent }
    spec:
      containers:
        - { name: agent, image: "shop/agent:1" }
`;

const ROLLED_OUT = /successfully rolled out\n$/;

const rolledOut = (kubectl: Kubectl, workload: string) => kubectl.ok("rollout", "status", workload, "--timeout=20s");

const imageOf = (kubectl: Kubectl, workload: string) =>
  kubectl.ok("get", workload, "-o", "jsonpath={.spec.template.spec.containers[0].image}");

/** The images of the pods that are there, once nothing of the old rollout is left. */
const onlyPodsOf = (kubectl: Kubectl, app: string, images: RegExp) =>
  kubectl.until(["get", "pods", "-l", `app=${app}`, "-o", "jsonpath={.items[*].spec.containers[0].image}"], images);

export const rollouts: Chapter = {
  title: "rolling out versions",
  steps(step) {
    step("a deployment comes up", async (kubectl) => {
      const create = ["create", "deployment", "shop", "--image=shop/web:1", "--replicas=3"];
      expect(await kubectl.ok(...create)).toBe("deployment.apps/shop created\n");
      expect(await rolledOut(kubectl, "deployment/shop")).toMatch(ROLLED_OUT);
      expect(await kubectl.ok("get", "deployment", "shop", "-o", "wide")).toMatch(
        /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE +CONTAINERS +IMAGES +SELECTOR\nshop +3\/3 +3 +3 +\d+s +web +shop\/web:1 +app=shop\n$/,
      );
    });

    step("a new image replaces its pods", async (kubectl) => {
      expect(await kubectl.ok("set", "image", "deployment/shop", "web=shop/web:2")).toBe(
        "deployment.apps/shop image updated\n",
      );
      expect(await rolledOut(kubectl, "deployment/shop")).toMatch(ROLLED_OUT);
      await onlyPodsOf(kubectl, "shop", /^(shop\/web:2 ?){3}$/);
    });

    step("an image that cannot be had holds the rollout, and the old pods serve on", async (kubectl) => {
      const annotations = { "local.vendor.io/behaviour": "pull-error" };
      const patch = { spec: { template: { metadata: { annotations } } } };
      await kubectl.ok("patch", "deployment", "shop", "-p", JSON.stringify(patch));
      const status = kubectl.start("rollout", "status", "deployment/shop");
      await status.line(/Waiting for deployment "shop" rollout to finish: 1 out of 3 new replicas have been updated/);
      await status.stop();
      await kubectl.until(["get", "pods", "-l", "app=shop"], /0\/1 +(ErrImagePull|ImagePullBackOff)/);
      expect(await kubectl.ok("get", "deployment", "shop", "-o", "jsonpath={.status.readyReplicas}")).toBe("3");
    });

    step("undo goes back, by one or to a revision", async (kubectl) => {
      expect(await kubectl.ok("rollout", "undo", "deployment/shop")).toBe("deployment.apps/shop rolled back\n");
      expect(await rolledOut(kubectl, "deployment/shop")).toMatch(ROLLED_OUT);
      expect(await imageOf(kubectl, "deployment/shop")).toBe("shop/web:2");
      await kubectl.ok("rollout", "undo", "deployment/shop", "--to-revision=1");
      await rolledOut(kubectl, "deployment/shop");
      expect(await imageOf(kubectl, "deployment/shop")).toBe("shop/web:1");
      expect(await kubectl.refused("rollout", "undo", "deployment/shop", "--to-revision=99")).toContain(
        "unable to find specified revision 99 in history",
      );
    });

    step("history lists the revisions, each with its template and its cause", async (kubectl) => {
      await kubectl.ok("annotate", "deployment/shop", "kubernetes.io/change-cause=back to the first");
      const history = await kubectl.until(["rollout", "history", "deployment/shop"], /back to the first/);
      expect(history).toMatch(
        /^deployment\.apps\/shop ?\nREVISION +CHANGE-CAUSE\n3 +<none>\n4 +<none>\n5 +back to the first\n/,
      );
      const fourth = await kubectl.ok("rollout", "history", "deployment/shop", "--revision=4");
      expect(fourth).toMatch(/Image:\tshop\/web:2/);
    });

    step("restart replaces the pods without changing anything else", async (kubectl) => {
      const names = async () => (await kubectl.ok("get", "pods", "-l", "app=shop", "-o", "name")).trim().split("\n");
      const before = await names();
      expect(await kubectl.ok("rollout", "restart", "deployment/shop")).toBe("deployment.apps/shop restarted\n");
      await rolledOut(kubectl, "deployment/shop");
      expect((await names()).filter((name) => before.includes(name))).toEqual([]);
      expect(await imageOf(kubectl, "deployment/shop")).toBe("shop/web:1");
    });

    step("a paused deployment collects changes until it is resumed", async (kubectl) => {
      expect(await kubectl.ok("rollout", "pause", "deployment/shop")).toBe("deployment.apps/shop paused\n");
      await kubectl.ok("set", "image", "deployment/shop", "web=shop/web:7");
      await kubectl.until(
        ["get", "deployment", "shop", "-o", "jsonpath={.metadata.generation}={.status.observedGeneration}"],
        /^(\d+)=\1$/,
      );
      expect(await onlyPodsOf(kubectl, "shop", /./)).toMatch(/^(shop\/web:1 ?){3}$/);
      expect(await kubectl.refused("rollout", "undo", "deployment/shop")).toContain("paused");
      expect(await kubectl.ok("rollout", "resume", "deployment/shop")).toBe("deployment.apps/shop resumed\n");
      expect(await rolledOut(kubectl, "deployment/shop")).toMatch(ROLLED_OUT);
      await onlyPodsOf(kubectl, "shop", /^(shop\/web:7 ?){3}$/);
    });

    step("scale, also only if it is as large as one thinks", async (kubectl) => {
      expect(await kubectl.ok("scale", "deployment/shop", "--replicas=5")).toBe("deployment.apps/shop scaled\n");
      expect(await rolledOut(kubectl, "deployment/shop")).toMatch(ROLLED_OUT);
      expect(await kubectl.refused("scale", "deployment/shop", "--current-replicas=3", "--replicas=1")).toContain(
        "Expected replicas to be 3, was 5",
      );
      await kubectl.ok("scale", "deployment/shop", "--replicas=0");
      await kubectl.until(["get", "pods", "-l", "app=shop"], /No resources found/);
      expect(await kubectl.ok("get", "deployment", "shop", "--no-headers")).toMatch(/^shop +0\/0 +0 +0 /);
    });

    step("describe tells how it stands", async (kubectl) => {
      await kubectl.ok("scale", "deployment/shop", "--replicas=2");
      await rolledOut(kubectl, "deployment/shop");
      const described = await kubectl.ok("describe", "deployment", "shop");
      expect(described).toMatch(/^Replicas: +2 desired \| 2 updated \| 2 total \| 2 available \| 0 unavailable$/m);
      expect(described).toMatch(/^RollingUpdateStrategy: +25% max unavailable, 25% max surge$/m);
      expect(described).toMatch(/^ +Progressing +True +NewReplicaSetAvailable$/m);
      expect(described).toMatch(/^NewReplicaSet: +shop-\w+ \(2\/2 replicas created\)$/m);
      expect(described).toMatch(/^ +Normal +ScalingReplicaSet .* deployment-controller +Scaled up replica set shop-/m);
    });

    step(
      "an autoscaler can be asked for (none runs here: paper nodes have no load)",
      async (kubectl) => {
        expect(await kubectl.ok("autoscale", "deployment/shop", "--max=3")).toBe(
          "horizontalpodautoscaler.autoscaling/shop autoscaled\n",
        );
        expect(await kubectl.ok("get", "hpa", "shop", "--no-headers")).toMatch(/^shop +Deployment\/shop .* 1 +3 /);
      },
      { since: 33, what: "autoscale by autoscaling/v2, the version served here" },
    );

    step("a daemon set is on every node that takes it", async (kubectl) => {
      await kubectl.ok("apply", "-f", kubectl.file("agent.yaml", NODE_AGENT));
      expect(await rolledOut(kubectl, "daemonset/agent")).toMatch(ROLLED_OUT);
      expect(await kubectl.ok("get", "daemonset", "agent", "--no-headers")).toMatch(/^agent +2 +2 +2 +2 +2 +<none> /);
      const nodeNames = "jsonpath={.items[*].spec.nodeName}";
      const nodes = (await kubectl.ok("get", "pods", "-l", "app=agent", "-o", nodeNames)).split(" ").sort();
      expect(nodes).toEqual(["story-worker-1", "story-worker-2"]);
    });

    step("it rolls node by node, and undoes and restarts like a deployment", async (kubectl) => {
      await kubectl.ok("set", "image", "daemonset/agent", "agent=shop/agent:2");
      expect(await rolledOut(kubectl, "daemonset/agent")).toMatch(ROLLED_OUT);
      await onlyPodsOf(kubectl, "agent", /^(shop\/agent:2 ?){2}$/);
      expect(await kubectl.ok("rollout", "history", "daemonset/agent")).toMatch(/\n1 +<none>\n2 +<none>\n/);
      expect(await kubectl.ok("rollout", "undo", "daemonset/agent")).toBe("daemonset.apps/agent rolled back\n");
      expect(await rolledOut(kubectl, "daemonset/agent")).toMatch(ROLLED_OUT);
      await onlyPodsOf(kubectl, "agent", /^(shop\/agent:1 ?){2}$/);
      expect(await kubectl.ok("rollout", "restart", "daemonset/agent")).toBe("daemonset.apps/agent restarted\n");
      expect(await rolledOut(kubectl, "daemonset/agent")).toMatch(ROLLED_OUT);
    });

    step("a node selector nobody matches parks it", async (kubectl) => {
      const patch = { spec: { template: { spec: { nodeSelector: { "story/none": "true" } } } } };
      await kubectl.ok("patch", "daemonset", "agent", "-p", JSON.stringify(patch));
      await kubectl.until(["get", "daemonset", "agent", "--no-headers"], /^agent +0 +0 +0 +0 +0 +story\/none=true /);
      await kubectl.until(["get", "pods", "-l", "app=agent"], /No resources found/);
    });
  },
};
