import { describe, expect } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { DAEMON_SETS, DEPLOYMENTS } from "../../src/cluster/kinds.ts";
import { writeReleaseBefore } from "../../src/local/installed/release-before.ts";
import { describeKind } from "../support/kind-scenario.ts";

describe("an upgrade to the next release of the same line", () => {
  const story = describeKind({ kind: "generic", nodes: 2 });
  const { step, ok, plan } = story;

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
    expect(steps.slice(-3)).toEqual(["operator-updated", "verify-version", "complete"]);
    await ok("upgrade", "-y");
    expect(await images()).toEqual(["v3.31.3", "v3.31.3"]);
    expect(await story.looks()).toBe("eBPF on 2 nodes; service proxy parked");
  });

  step("taken back, the release before is there again", async () => {
    await ok("rollback", "-y");
    expect(await images()).toEqual(["v3.31.2", "v3.31.2"]);
    expect(await story.looks()).toBe("eBPF on 2 nodes; service proxy parked");
  });
});
