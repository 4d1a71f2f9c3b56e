import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LabNode, type LabPod, type NodeLab, nodeLab, request, serve, until, whyNoNodes } from "./node-lab.ts";

const why = whyNoNodes();

/** The API server comes and goes; what the node knows it keeps. */
describe.skipIf(why !== undefined)(`a node without its API server${why ? ` (${why})` : ""}`, () => {
  let lab: NodeLab;
  let node: LabNode;
  let [client, server]: LabPod[] = [];
  let end = () => {};
  beforeAll(async () => {
    lab = await nodeLab({ bpf: true, nodes: 1, pools: [{ cidr: "10.88.0.0/24", vxlanMode: "Never", blockSize: 28 }] });
    node = lab.nodes[0]!;
    await node.start();
    client = await lab.addPod("client", node);
    server = await lab.addPod("server", node);
    end = await serve(server, 8080, 4);
  });
  afterAll(async () => {
    end();
    await lab?.close();
  });

  it("goes on: connections work, pods can be removed, and a new one waits", async () => {
    const goes = await lab.addPod("goes", node);
    lab.cutApi(true);
    expect(await request(client!, server!.addresses[0]!, 8080)).toMatch(/^server saw/);
    expect(await node.cni("DEL", goes)).toEqual({ code: 0, output: undefined });
    expect(await node.cni("ADD", goes)).toMatchObject({ code: 1, output: { code: 11 } });
    expect(await node.cni("CHECK", server!)).toEqual({ code: 0, output: undefined });
    lab.cutApi(false);
    await until(
      async () => (await node.cni("ADD", goes)).code === 0,
      () => node.log().slice(-2000),
    );
    await lab.removePod(goes);
  });

  it("an agent that starts without one touches nothing, and is not ready", async () => {
    lab.cutApi(true);
    await node.kill();
    const starting = node.start();
    await until(
      () => node.log().includes("watch failed, retrying"),
      () => node.log().slice(-2000),
    );
    expect(await node.cni("STATUS", server!)).toMatchObject({ code: 1, output: { code: 50 } });
    expect(await request(client!, server!.addresses[0]!, 8080)).toMatch(/^server saw/);
    lab.cutApi(false);
    await starting;
    expect(await request(client!, server!.addresses[0]!, 8080)).toMatch(/^server saw/);
  });
});
