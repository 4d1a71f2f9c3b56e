import { describe, expect, it } from "vitest";
import { fakeClusterCommands, vendorctl } from "../../testing/fake-context.ts";

describe("vendorctl cluster", () => {
  it("brings a cluster up, says what happened on stderr and the result on stdout", async () => {
    const { exit, out, err, calls } = await vendorctl([
      "cluster",
      "up",
      "--paper",
      "--detach",
      "--nodes=2",
      "--kind=aks",
    ]);
    expect({ exit, err }).toEqual({ exit: 0, err: "ok  API server is up\n" });
    expect(out).toBe(
      "cluster:    demo (aks), 2 of 2 nodes ready\n" +
        "API server: https://127.0.0.1:6443\n" +
        "kubeconfig: /tmp/demo/kubeconfig\n" +
        "next:       export KUBECONFIG=$(vendorctl cluster kubeconfig)\n",
    );
    expect(calls).toEqual([["up", { name: "demo", kind: "aks", nodes: 2, runtime: "paper", detach: true }]]);
  });

  it("passes on every flag of up, with its type", async () => {
    const line =
      "cluster up --name old --proxy ipvs --datastore etcd --installed 3.27.2 --method manifest --data-dir d --port 7443";
    const { calls } = await vendorctl(line.split(" "));
    const expected = { name: "old", kind: "generic", nodes: 3, runtime: "auto", detach: false, proxy: "ipvs" };
    const seed = { datastore: "etcd", installed: "v3.27.2", method: "manifest", dataDir: "d", port: 7443 };
    expect(calls).toEqual([["up", { ...expected, ...seed }]]);
  });

  it("streams JSON lines with -o json, the result last", async () => {
    const { out, err } = await vendorctl(["cluster", "up", "--detach", "-o", "json"]);
    const lines = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map(({ event }) => event)).toEqual(["step", "step", "result"]);
    expect(lines.at(-1)).toMatchObject({ name: "demo", server: "https://127.0.0.1:6443" });
    expect(err).toBe("");
  });

  it("says only the result with -q, and that it goes on running when nobody detached it", async () => {
    expect((await vendorctl(["cluster", "up", "--detach", "-q"])).err).toBe("");
    expect((await vendorctl(["cluster", "up"])).err).toContain("running until you press Ctrl-C");
  });

  it("colours for a terminal, unless told not to", async () => {
    const config = { color: true };
    expect((await vendorctl(["cluster", "up", "--detach"], { config })).err).toContain("\x1b[32mok");
    expect((await vendorctl(["cluster", "up", "--detach", "--no-color"], { config })).err).not.toContain("\x1b");
  });

  it("gives up after --timeout and says so", async () => {
    const commands = {
      ...fakeClusterCommands([]),
      up: (_: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise<never>((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("stopped")))),
    };
    const { exit, err } = await vendorctl(["cluster", "up", "--timeout=20ms"], { commands });
    expect(exit).toBe(5);
    expect(err).toContain("error: not finished after 0.02s [TIMED_OUT]\n  fix: use a longer --timeout");
  });

  it("takes a cluster down, and does not mind one that is not there", async () => {
    expect((await vendorctl(["cluster", "down"])).out).toBe("cluster demo is removed\n");
    expect(await vendorctl(["cluster", "down", "--name", "x"])).toMatchObject({
      exit: 0,
      out: "there is no cluster x\n",
    });
  });

  it("lists clusters", async () => {
    expect((await vendorctl(["cluster", "list"])).out).toBe(
      "NAME   KIND      STATE   NODES   SERVER\ndemo   generic   Ready   3/3     https://127.0.0.1:6443\n",
    );
    const none = { ...fakeClusterCommands([]), list: async () => [] };
    expect((await vendorctl(["cluster", "list"], { commands: none })).out).toContain("no clusters; start one with");
    expect((await vendorctl(["cluster", "list", "-o", "json"], { commands: none })).out).toBe("[]\n");
  });

  it("prints the path of the kubeconfig and nothing else, so that a shell can use it", async () => {
    expect((await vendorctl(["cluster", "kubeconfig", "--name", "x"])).out).toBe("/tmp/x/kubeconfig\n");
  });

  it("prints logs, all or the last of them", async () => {
    expect((await vendorctl(["cluster", "logs"])).out).toBe("one\ntwo\nthree\n");
    expect((await vendorctl(["cluster", "logs", "--tail", "1"])).out).toBe("three\n");
  });
});
