import { describe, expect } from "vitest";
import { DAEMON_SETS, DEPLOYMENTS, SERVICES } from "../../src/cluster/kinds.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { customResources } from "../support/operator-manifests.ts";
import { installOperator, runWithKubectl } from "../support/operator-scenario.ts";
import { untilQuiet } from "../support/operator-snapshot.ts";
import { untilAvailable, untilStatus } from "../support/operator-status.ts";

const AGENTS = { namespace: "vendor-system", name: "vendor-node" };
const CONTROLLERS = { namespace: "vendor-system", name: "vendor-kube-controllers" };

interface Template {
  spec: { template: { spec: { tolerations?: object[]; containers: { image: string; env?: { name: string }[] }[] } } };
}

describe("hand edits to what the operator looks after", () => {
  const story = runWithKubectl({ kind: "generic" });
  const { step } = story;

  step("on a cluster where all is well", async () => {
    const { kubectl, cluster } = story;
    await installOperator(story, "generic");
    await kubectl.ok(
      "create",
      "-f",
      kubectl.file("custom-resources.yaml", customResources("linuxDataplane: Nftables")),
    );
    for (const part of ["network", "ippools", "apiserver"]) await untilAvailable(cluster.client, part);
    await untilQuiet(cluster.client);
  });

  step("a field of ours is put back, and status says which, whose change it was, and when", async () => {
    const { kubectl, cluster } = story;
    const image = ["set", "image", "daemonset/vendor-node", "*=registry.example.com/other:v1"];
    await kubectl.ok("-n", "vendor-system", ...image);
    const told = await untilStatus(
      cluster.client,
      "network",
      ({ available, message }) => available && message.includes("Drift reverted"),
    );
    expect(told.message).toMatch(
      /Drift reverted: .*DaemonSet vendor-system\/vendor-node spec\.template\.spec\.\w+\[name=[\w-]+\]\.image, changed by kubectl-set at \d{4}-\d\d-\d\dT[\d:]+Z/,
    );
    const agents = (await cluster.client.get(DAEMON_SETS, AGENTS)) as unknown as Template;
    for (const container of agents.spec.template.spec.containers) {
      expect(container.image).toBe("registry.vendor.io/vendor/vendor:v3.31.3");
    }
  });

  step("what somebody adds beside ours stays", async () => {
    const { kubectl, cluster } = story;
    const where = ["-n", "vendor-system"];
    await kubectl.ok(...where, "label", "deployment/vendor-kube-controllers", "team=network");
    await kubectl.ok(...where, "annotate", "service/vendor-api", "example.com/note=ours too");
    await kubectl.ok(...where, "scale", "deployment/vendor-kube-controllers", "--replicas=5");
    await eventually(
      async () => (await cluster.client.get(DEPLOYMENTS, CONTROLLERS))["spec"] as { replicas: number },
      ({ replicas }) => replicas === 2,
    );
    await untilAvailable(cluster.client, "network");
    await untilQuiet(cluster.client);
    const controllers = await cluster.client.get(DEPLOYMENTS, CONTROLLERS);
    expect(controllers.metadata.labels?.["team"]).toBe("network");
    const service = await cluster.client.get(SERVICES, { namespace: "vendor-system", name: "vendor-api" });
    expect(service.metadata.annotations?.["example.com/note"]).toBe("ours too");
  });

  step("what is deleted is made again", async () => {
    const { kubectl, cluster } = story;
    await kubectl.ok("-n", "vendor-system", "delete", "deployment", "vendor-kube-controllers", "--wait=false");
    await kubectl.ok("delete", "clusterrolebinding", "vendor-node");
    await eventually(
      () => kubectl.run(["get", "clusterrolebinding", "vendor-node", "-o", "name"]),
      ({ code }) => code === 0,
      20_000,
    );
    await kubectl.ok(
      "-n",
      "vendor-system",
      "wait",
      "--for=create",
      "deployment/vendor-kube-controllers",
      "--timeout=30s",
    );
    await untilStatus(cluster.client, "network", ({ available }) => available);
  });

  step(
    "the switch of the data plane is the operator's: moved by hand, it is moved back, and whose hand it was is told",
    async () => {
      const { kubectl, cluster } = story;
      const words = ["patch", "dataplaneconfigurations.crd.vendor.io", "default", "--type=merge", "-p"];
      await kubectl.ok(...words, '{"spec":{"bpfEnabled":true,"logSeverityScreen":"Debug"}}');
      const told = await untilStatus(
        cluster.client,
        "network",
        ({ available, message }) => available && /spec\.bpfEnabled/.test(message),
      );
      expect(told.message).toMatch(/DataplaneConfiguration default spec\.bpfEnabled, changed by kubectl-patch at /);
      const path = "jsonpath={.spec.bpfEnabled} {.spec.logSeverityScreen}";
      expect(await kubectl.ok("get", "dataplaneconfigurations.crd.vendor.io", "default", "-o", path)).toBe(
        "false Debug",
      );
    },
  );
});
