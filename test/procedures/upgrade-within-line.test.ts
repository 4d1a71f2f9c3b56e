import { describe, expect } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { DAEMON_SETS, DEPLOYMENTS, PODS } from "../../src/cluster/kinds.ts";
import type { LocalCluster } from "../../src/local/cluster.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { writeReleaseBefore } from "../../src/local/installed/release-before.ts";
import { describeKind } from "../support/kind-scenario.ts";

describe("an upgrade to the next release of the same line", () => {
  /** The versions of the agents that run, by how many, when a wave is done. */
  const waves: string[] = [];
  const story = describeKind({ kind: "generic", nodes: 3 }, (line, cluster) =>
    /^ok +\d+\/\d+ +Upgrade the agents of/.test(line)
      ? versions(cluster).then((seen) => void waves.push(seen))
      : undefined,
  );
  const { step, ok, plan } = story;

  async function versions({ client }: LocalCluster): Promise<string> {
    const { items } = await client.list<Pod>(PODS, {
      namespace: "vendor-system",
      labelSelector: "k8s-app=vendor-node",
    });
    const count = (version: string) => items.filter(({ spec }) => spec.containers[0]?.image?.endsWith(version)).length;
    return `${count("v3.31.2")} old, ${count("v3.31.3")} new`;
  }
  const strategy = async () => {
    const { spec } = await story.cluster.client.get<KubeObject>(DAEMON_SETS, {
      namespace: "vendor-system",
      name: "vendor-node",
    });
    return (spec as { updateStrategy: { type: string } }).updateStrategy.type;
  };

  const images = async () => {
    const { client } = story.cluster;
    const imageOf = async (kind: typeof DEPLOYMENTS, namespace: string, name: string) => {
      const { spec } = await client.get<KubeObject>(kind, { namespace, name });
      const { containers } = (spec as { template: { spec: { containers: { image: string }[] } } }).template.spec;
      return containers[0]?.image.split(":").at(-1);
    };
    return [
      await imageOf(DEPLOYMENTS, "vendor-operator", "vendor-operator"),
      await imageOf(DAEMON_SETS, "vendor-system", "vendor-node"),
    ];
  };

  step("somebody has installed the release before, and it says so", async () => {
    const { url } = await writeReleaseBefore(story.file("releases"));
    expect(await ok("install", "-y", "--manifest-url", url)).toContain("Install v3.31.2 with eBPF");
    expect(await images()).toEqual(["v3.31.2", "v3.31.2"]);
    expect(await ok("version")).toContain("v3.31.2");
  });

  step("the version is nobody's edit: it changes, and is verified to the last digit", async () => {
    const { plan: made, steps } = await plan("upgrade");
    expect(made.title).toContain("from v3.31.2 to v3.31.3");
    expect(made.notes.join("\n")).not.toContain("carried over");
    expect(made.steps.find(({ id }) => id === "verify-version")?.title).toContain("v3.31.3");
    expect(steps.slice(-7)).toEqual([
      ...["agents-rendered", "update-canary", "update-wave-1", "update-wave-2"],
      ...["release-agents", "verify-version", "complete"],
    ]);
    await ok("upgrade", "-y");
    expect(await images()).toEqual(["v3.31.3", "v3.31.3"]);
    expect(await story.looks()).toBe("eBPF on 3 nodes; service proxy parked");
  });

  step("agents are replaced in waves, the canary node first, and roll out by themselves again afterwards", async () => {
    expect(waves).toEqual(["2 old, 1 new", "1 old, 2 new", "0 old, 3 new"]);
    expect(await strategy()).toBe("RollingUpdate");
  });

  step("taken back, the release before is there again, and pods that started since keep their addresses", async () => {
    const { client } = story.cluster;
    const block = { apiVersion: "crd.vendor.io/v1", kind: "IPAMBlock", metadata: { name: "10-244-7-0-26" } };
    const blocks = await client.resourceFor(block);
    const spec = { cidr: "10.244.7.0/26", allocations: [], attributes: [], unallocated: [] };
    await client.create(blocks, { ...block, spec } as KubeObject);
    await ok("rollback", "-y");
    expect(await client.get<KubeObject>(blocks, block.metadata)).toMatchObject({ spec });
    expect(await images()).toEqual(["v3.31.2", "v3.31.2"]);
    expect([await versions(story.cluster), await strategy()]).toEqual(["3 old, 0 new", "RollingUpdate"]);
    expect(await story.looks()).toBe("eBPF on 3 nodes; service proxy parked");
  });
});
