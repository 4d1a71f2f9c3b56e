import { describe, expect, it } from "vitest";
import type { CniAnswer, CniDeletion, CniRequest, CniResult } from "../api/protocol/cni.ts";
import { readPluginEnv } from "./config.ts";
import { runPlugin } from "./plugin.ts";

const RESULT: CniResult = {
  interfaces: [
    { name: "ven0", mac: "ee:ee:ee:ee:ee:ee", mtu: 1450 },
    { name: "eth0", mac: "02:00:00:00:00:01", mtu: 1450, sandbox: "/run/netns/p" },
  ],
  ips: [
    { address: "10.0.0.1/32", interface: 1 },
    { address: "fd00::1/128", interface: 1 },
  ],
  routes: [{ dst: "0.0.0.0/0", gw: "169.254.1.1" }],
};

const ENV = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "abc",
  CNI_NETNS: "/run/netns/p",
  CNI_IFNAME: "eth0",
  CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web",
};

async function call(
  env: Partial<typeof ENV>,
  config: object | string,
  answer: CniAnswer | Error = { result: RESULT },
): Promise<{ exitCode: number; output: Record<string, unknown>; asked: CniRequest[]; noted: CniDeletion[] }> {
  const asked: CniRequest[] = [];
  const noted: CniDeletion[] = [];
  const input = typeof config === "string" ? config : JSON.stringify({ name: "vendor", type: "vendor", ...config });
  const ask = async (_socket: string, request: CniRequest) => {
    asked.push(request);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const note = (_socket: string, deletion: CniDeletion) => void noted.push(deletion);
  const { exitCode, output } = await runPlugin(readPluginEnv({ ...ENV, ...env }), input, ask, note);
  return { exitCode, output: output ? (JSON.parse(output) as Record<string, unknown>) : {}, asked, noted };
}

describe("the plugin", () => {
  it("hands the agent what the runtime said, and prints the answer in the version asked for", async () => {
    const { exitCode, output, asked } = await call({}, { cniVersion: "1.1.0" });
    expect(exitCode).toBe(0);
    expect(asked[0]).toMatchObject({
      command: "ADD",
      containerId: "abc",
      args: { K8S_POD_NAMESPACE: "shop", K8S_POD_NAME: "web" },
    });
    expect(output).toMatchObject({ cniVersion: "1.1.0", interfaces: [{ mtu: 1450 }, {}], ips: [{}, {}] });
  });

  it("as loopback, which runtimes call in addition, it leaves the pod to the call that connects it", async () => {
    const config = { cniVersion: "1.0.0", name: "cni-loopback", type: "loopback" };
    const added = await call({ CNI_IFNAME: "lo" }, config);
    expect(added).toMatchObject({ exitCode: 0, asked: [], noted: [] });
    expect(added.output).toMatchObject({
      interfaces: [{ name: "lo", sandbox: "/run/netns/p" }],
      ips: [{ address: "127.0.0.1/8", interface: 0 }],
    });
    for (const command of ["DEL", "CHECK"]) {
      const ended = await call({ CNI_COMMAND: command, CNI_IFNAME: "lo" }, config);
      expect(ended).toEqual({ exitCode: 0, output: {}, asked: [], noted: [] });
    }
    expect(await call({ CNI_NETNS: "" }, config)).toMatchObject({ exitCode: 1, asked: [] });
  });

  it("before 1.1 no interface has an MTU, before 1.0 every address says its family", async () => {
    const newer = await call({}, { cniVersion: "1.0.0" });
    expect(newer.output["interfaces"]).not.toMatchObject([{ mtu: 1450 }, {}]);
    expect(newer.output["ips"]).toEqual(RESULT.ips);
    const older = await call({}, { cniVersion: "0.4.0" });
    expect(older.output["ips"]).toMatchObject([{ version: "4" }, { version: "6" }]);
  });

  it("says which versions it speaks without asking anybody", async () => {
    const { output, asked } = await call({ CNI_COMMAND: "VERSION" }, { cniVersion: "1.0.0" });
    expect(output["supportedVersions"]).toContain("1.1.0");
    expect(asked).toEqual([]);
  });

  it.each([
    ["an agent that is down", "ADD", 11],
    ["an agent that does not answer, on removal", "DEL", 11],
    ["an agent that is down, asked for its status", "STATUS", 50],
  ])("%s: %s fails with code %d", async (_case, command, code) => {
    const down = new Error("connect ECONNREFUSED");
    const { exitCode, output } = await call({ CNI_COMMAND: command }, { cniVersion: "1.1.0" }, down);
    expect(exitCode).toBe(1);
    expect(output).toMatchObject({ code, details: "connect ECONNREFUSED" });
  });

  it("removal without an agent succeeds, and is noted for the next one", async () => {
    const down = Object.assign(new Error("connect ENOENT"), { code: "ENOENT" });
    const { exitCode, output, asked, noted } = await call({ CNI_COMMAND: "DEL" }, { cniVersion: "1.1.0" }, down);
    expect([exitCode, output, noted]).toEqual([0, {}, [{ containerId: "abc", ifname: "eth0" }]]);
    expect(asked).toHaveLength(2);
    expect(await call({}, { cniVersion: "1.1.0" }, down)).toMatchObject({
      exitCode: 1,
      output: { code: 11 },
      noted: [],
    });
  });

  it("removal is requested again after it was noted: the agent may have read the notes before", async () => {
    const happened: string[] = [];
    const ask = async () => {
      happened.push("request");
      if (happened.length === 1) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
      return {};
    };
    const input = JSON.stringify({ name: "vendor", type: "vendor", cniVersion: "1.1.0" });
    const env = readPluginEnv({ ...ENV, CNI_COMMAND: "DEL" });
    expect(await runPlugin(env, input, ask, () => void happened.push("note"))).toEqual({ output: "", exitCode: 0 });
    expect(happened).toEqual(["request", "note", "request"]);
  });

  it("passes on the agent's own code", async () => {
    const error = { code: 100, msg: "no address is free", details: "[IPAM_EXHAUSTED]" };
    expect((await call({}, { cniVersion: "1.0.0" }, { error })).output).toEqual({ cniVersion: "1.0.0", ...error });
  });

  it.each([
    ["no JSON", {}, "nonsense", 6],
    ["a version nobody speaks", {}, { cniVersion: "9.0.0" }, 1],
    ["no name", {}, JSON.stringify({ cniVersion: "1.0.0" }), 7],
    ["an unknown command", { CNI_COMMAND: "DANCE" }, { cniVersion: "1.0.0" }, 4],
    ["no container", { CNI_CONTAINERID: "" }, { cniVersion: "1.0.0" }, 4],
    ["a container that is a path", { CNI_CONTAINERID: "../x" }, { cniVersion: "1.0.0" }, 4],
    ["no namespace to add to", { CNI_NETNS: "" }, { cniVersion: "1.0.0" }, 4],
    ["an interface no kernel takes", { CNI_IFNAME: "a/b" }, { cniVersion: "1.0.0" }, 4],
  ])("refuses %s", async (_case, env, config, code) => {
    const { exitCode, output, asked } = await call(env, config);
    expect([exitCode, output["code"], asked]).toEqual([1, code, []]);
  });

  it("removes without a namespace: it may be gone already", async () => {
    expect(await call({ CNI_COMMAND: "DEL", CNI_NETNS: "" }, { cniVersion: "1.0.0" }, {})).toMatchObject({
      exitCode: 0,
    });
  });
});
