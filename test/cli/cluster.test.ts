import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/cluster/client.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { NAMESPACES, NODES } from "../../src/cluster/kinds.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import { vendorctl } from "../support/vendorctl.ts";

/** Clusters on this machine, through the tool itself: each is a process and a folder. */

const tool = vendorctl();
afterAll(() => tool.clear());

const clientOf = (kubeconfig: string) =>
  createClient(httpsTransport(loadConnection({ kubeconfig })), { userAgent: "story" });

describe("vendorctl cluster", () => {
  it("brings a cluster up in the background, shows it, and takes it down", async () => {
    const up = await tool.run("cluster", "up", "--paper", "--detach");
    expect(up).toMatchObject({ status: 0 });
    expect(up.out).toContain("demo (generic), 0 of 3 nodes ready; 3 wait for a CNI");

    const listed = await tool.run("cluster", "list");
    expect(listed.out).toMatch(
      /^NAME +KIND +STATE +NODES +SERVER\ndemo +generic +running +0\/3 +https:\/\/127\.0\.0\.1:\d+\n$/,
    );
    const path = (await tool.run("cluster", "kubeconfig")).out.trim();
    const client = clientOf(path);
    expect((await client.list(NODES)).items).toHaveLength(3);
    client.close();
    expect((await tool.run("cluster", "logs", "--tail", "1")).out).toContain("the cluster is ready");

    const twice = await tool.run("cluster", "up", "--paper", "--detach");
    expect(twice).toMatchObject({ status: 1 });
    expect(twice.err).toContain("the cluster demo is already running [CLUSTER_RUNNING]");

    expect((await tool.run("cluster", "down")).out).toBe("cluster demo is removed\n");
    expect((await tool.run("cluster", "down")).out).toBe("there is no cluster demo\n");
    expect((await tool.run("cluster", "list")).out).toContain("no clusters");
  });

  it("runs the demo of npm start, and shows the running cluster the second time", async () => {
    const first = await tool.run("start-demo", "--simulated");
    expect(first, first.err).toMatchObject({ status: 0 });
    for (const line of [
      "/kubeconfig ./bin/vendorctl install -y --manifest-url ",
      "data plane eBPF",
      "ok kube-proxy  disabled by the operator",
      "/kubeconfig ./bin/vendorctl upgrade -y\n",
      "all 3 objects are unchanged; 0 lost",
    ]) {
      expect(`${first.out}${first.err}`).toContain(line);
    }
    // At most 80 lines: on real nodes, three runs add their traffic, and each minute of a run its line.
    expect(`${first.out}${first.err}`.trimEnd().split("\n").length).toBeLessThanOrEqual(70);
    // What the demo shows can be pasted: a suggestion of a command lacks the path of the tool, and the cluster.
    expect(first.out).not.toMatch(/^next:/m);
    for (const [, command = ""] of first.out.matchAll(/^\$ (.*)$/gm)) {
      expect(command).toMatch(/^(KUBECONFIG=\S+\/kubeconfig )?\.\/bin\/vendorctl \S/);
    }
    const again = await tool.run("start-demo", "--simulated");
    expect(again.out).toContain("Cluster demo is running already");
    expect(again.out).toContain("Cluster demo-old is running already");
    await tool.run("cluster", "down");
    await tool.run("cluster", "down", "--name", "demo-old");
  });

  it("with a data directory, a cluster that was killed comes back as it was, to the same clients", async () => {
    const data = join(tool.home, "data");
    const up = () =>
      tool.run("cluster", "up", "--name", "kept", "--paper", "--detach", "--nodes", "1", "--data-dir", data);
    expect((await up()).status).toBe(0);
    const path = (await tool.run("cluster", "kubeconfig", "--name", "kept")).out.trim();
    const before = clientOf(path);
    await before.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "precious" } });
    before.close();
    const { pid } = JSON.parse(readFileSync(join(tool.home, "clusters", "kept", "cluster.json"), "utf8")) as {
      pid: number;
    };
    process.kill(pid, "SIGKILL");
    await expect.poll(async () => (await tool.run("cluster", "list")).out).toMatch(/kept +generic +stopped/);
    expect((await up()).status).toBe(0);
    const after = clientOf(path);
    expect(await after.get(NAMESPACES, { name: "precious" })).toMatchObject({ metadata: { name: "precious" } });
    after.close();
  });

  it("every kind of cluster starts, with old and Windows nodes where asked", async () => {
    for (const kind of ["iac", "openshift", "aks", "eks", "mke"]) {
      const up = await tool.run(
        "cluster",
        "up",
        "--name",
        kind,
        "--kind",
        kind,
        "--paper",
        "--detach",
        "--nodes",
        "4",
        "--old-nodes",
        "1",
        "--windows-nodes",
        "1",
      );
      expect(up, up.err).toMatchObject({ status: 0 });
      const client = clientOf((await tool.run("cluster", "kubeconfig", "--name", kind)).out.trim());
      const nodes = (await client.list(NODES)).items;
      const systems = nodes.map(
        (node) => (node["status"] as { nodeInfo: { operatingSystem: string } }).nodeInfo.operatingSystem,
      );
      expect(systems.filter((system) => system === "windows")).toHaveLength(1);
      client.close();
      await tool.run("cluster", "down", "--name", kind);
    }
  });

  it("is seeded as an older version left it", async () => {
    const up = await tool.run(
      "cluster",
      "up",
      "--name",
      "old",
      "--paper",
      "--detach",
      "--installed",
      "v3.27",
      "--method",
      "operator",
    );
    expect(up, up.err).toMatchObject({ status: 0 });
    const client = clientOf((await tool.run("cluster", "kubeconfig", "--name", "old")).out.trim());
    const deployments = await client.resourceFor({ apiVersion: "apps/v1", kind: "Deployment" });
    const operator = await client.get(deployments, { namespace: "vendor-operator", name: "vendor-operator" });
    expect(JSON.stringify(operator)).toContain("v3.27");
    client.close();
  });
});
