import { describe, expect } from "vitest";
import { commandIn } from "../support/operator-commands.ts";
import { customResources, endpointMap, endpointMapOf } from "../support/operator-manifests.ts";
import { installOperator, type OperatorScenario, runWithKubectl } from "../support/operator-scenario.ts";
import { untilAvailable, untilStatus } from "../support/operator-status.ts";

const TIME = String.raw`\d{4}-\d\d-\d\dT[\d:]+Z`;

/** Asks the paper nodes to let the agents behave badly; null ends it. */
async function agentsDo({ kubectl }: OperatorScenario, behaviour: string | null): Promise<void> {
  const annotations = { "local.vendor.io/behaviour": behaviour };
  const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } });
  await kubectl.ok("-n", "vendor-system", "patch", "daemonset", "vendor-node", "--type=merge", "-p", patch);
}

describe("status tells the root cause, since when, and what to type next", () => {
  const story = runWithKubectl({ kind: "generic" });
  const { step } = story;
  const degraded = (reason: RegExp) =>
    untilStatus(story.cluster.client, "network", (told) => told.degraded && reason.test(told.reason));

  step("all is well: one line per part, and what nobody asked for is not installed, which is no trouble", async () => {
    const { kubectl, cluster } = story;
    await installOperator(story, "generic");
    await kubectl.ok(
      "create",
      "-f",
      kubectl.file("custom-resources.yaml", customResources("linuxDataplane: Nftables")),
    );
    for (const part of ["network", "ippools", "apiserver"]) await untilAvailable(cluster.client, part);
    const table = await kubectl.ok("get", "vendorstatus");
    expect(table.split("\n").map((line) => line.replace(/ +\d+[ms\d]* +/, " ").replace(/ +/g, " "))).toEqual([
      "NAME AVAILABLE PROGRESSING DEGRADED SINCE MESSAGE",
      "apiserver True False False The API vendor.io/v3 answers.",
      "flow-logs False False False There is no FlowLogs named default.",
      "flow-ui False False False There is no FlowUI named default.",
      "ippools True False False 1 pool: 10.244.0.0/16.",
      "network True False False The nftables data plane runs on 2 nodes.",
      "service-proxy False False False serviceProxyManagement is Disabled. kube-proxy is not changed.",
      "",
    ]);
    const why =
      "jsonpath={range .items[*]}{.metadata.name}: {.status.conditions[?(@.type=='Available')].reason}{'\\n'}{end}";
    expect(await kubectl.ok("get", "vendorstatus", "-o", why)).toBe(
      [
        "apiserver: AllObjectsAvailable",
        "flow-logs: NotInstalled",
        "flow-ui: NotInstalled",
        "ippools: AllObjectsAvailable",
        "network: AllObjectsAvailable",
        "service-proxy: NotInstalled",
        "",
      ].join("\n"),
    );
  });

  step("an image that cannot be pulled: the pod, its node, the event", async () => {
    const { kubectl, cluster } = story;
    await agentsDo(story, "pull-error");
    const told = await degraded(/^Pod(ErrImagePull|ImagePullBackOff)$/);
    expect(told.message).toMatch(
      /^Pod vendor-system\/vendor-node-\w+ on node story-[\w-]+ container [\w-]+: (ErrImagePull|ImagePullBackOff), /,
    );
    expect(told.message).toMatch(new RegExp(`since ${TIME}\\.`));
    expect(told.message).toMatch(/Last event: .*registry\.vendor\.io\/vendor\/vendor:v3\.31\.3/);
    expect(told.message).toMatch(/Next: kubectl -n vendor-system describe pod vendor-node-\w+$/);
    expect(await kubectl.ok(...commandIn(told.message))).toContain("Failed to pull image");
    expect(await kubectl.ok("get", "vendorstatus", "network", "-o", "wide")).toContain("describe pod vendor-node-");
    await agentsDo(story, null);
    await untilAvailable(cluster.client, "network");
  });

  step("a crash loop: the container, its exit, and its last log", async () => {
    const { kubectl, cluster } = story;
    await agentsDo(story, "exit:7");
    const told = await degraded(/^PodCrashLoopBackOff$/);
    expect(told.message).toMatch(
      /^Pod vendor-system\/vendor-node-\w+ on node story-[\w-]+ container [\w-]+: CrashLoopBackOff, last exit 7/,
    );
    expect(told.message).toMatch(/Next: kubectl -n vendor-system logs vendor-node-\w+ -c [\w-]+ --previous$/);
    expect(await kubectl.ok(...commandIn(told.message))).toContain("exits with 7");
    await agentsDo(story, null);
    await untilAvailable(cluster.client, "network");
  });

  step(
    "a node that refuses the programs of eBPF: it is named, eBPF stays off, and the service proxy is not touched",
    async () => {
      const { kubectl, cluster } = story;
      const [node = ""] = cluster.nodeNames;
      const refusal = "the verifier refuses the programs: back-edge from insn 12 to 3";
      await kubectl.ok("annotate", "node", node, `local.vendor.io/refuse-programs=${refusal}`);
      const patch = { linuxDataplane: "BPF", hostPorts: null, serviceProxyManagement: "Enabled" };
      await patchNetwork(patch);
      const told = await degraded(/^EbpfProgramsRefused$/);
      expect(told.message).toContain(`Node ${node}: ${refusal}.`);
      expect(told.message).toContain("eBPF is not enabled and kube-proxy is unchanged.");
      const enabled = ["get", "dataplaneconfigurations.crd.vendor.io", "default", "-o", "jsonpath={.spec.bpfEnabled}"];
      expect(await kubectl.ok(...enabled)).toBe("false");
      const proxy = ["-n", "kube-system", "get", "daemonset", "kube-proxy", "-o"];
      expect(await kubectl.ok(...proxy, "jsonpath={.status.numberReady} {.spec.template.spec.nodeSelector}")).toBe(
        '2 {"kubernetes.io/os":"linux"}',
      );
    },
  );

  step("the node is repaired: the operator goes on where it had stopped", async () => {
    const { kubectl, cluster } = story;
    const [node = ""] = cluster.nodeNames;
    await kubectl.ok("annotate", "node", node, "local.vendor.io/refuse-programs-");
    expect((await untilAvailable(cluster.client, "network")).message).toBe("eBPF runs on 2 nodes.");
    await untilStatus(
      cluster.client,
      "service-proxy",
      ({ available, message }) => available && /disabled/.test(message),
    );
    await patchNetwork({ linuxDataplane: "Nftables" });
    await untilAvailable(cluster.client, "network");
  });

  step("an address that leads nowhere: the map that names it, and nothing that runs gets it", async () => {
    const { kubectl, cluster } = story;
    const { port } = new URL(cluster.url);
    const agents = ["-n", "vendor-system", "get", "daemonset", "vendor-node", "-o", "jsonpath={.metadata.generation}"];
    const before = await kubectl.ok(...agents);
    await kubectl.ok("apply", "-f", kubectl.file("wrong.yaml", endpointMapOf("api.stroy.internal", port)));
    for (const part of ["network", "apiserver"]) {
      const told = await untilStatus(cluster.client, part, ({ reason }) => reason === "EndpointUnanswered");
      expect(told.message).toMatch(/^The API server does not answer the operator at api\.stroy\.internal:/);
      expect(told.message).toMatch(/its name does not resolve\. Fix: kubectl -n vendor-operator edit configmap /);
    }
    const right = endpointMap("generic", cluster) ?? "";
    await kubectl.ok("apply", "-f", kubectl.file("right.yaml", right));
    await untilAvailable(cluster.client, "network");
    await untilAvailable(cluster.client, "apiserver");
    expect(await kubectl.ok(...agents)).toBe(before);
  });

  async function patchNetwork(vendorNetwork: object): Promise<void> {
    const patch = JSON.stringify({ spec: { vendorNetwork } });
    await story.kubectl.ok("patch", "installation", "default", "--type=merge", "-p", patch);
  }
});
