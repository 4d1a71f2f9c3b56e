import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, type LabNode, type NodeLab, nodeLab, serve, whyNoNodes } from "./node-lab.ts";

const why = whyNoNodes();

describe.skipIf(why !== undefined)(`one node, its agent and its pods${why ? ` (${why})` : ""}`, () => {
  let lab: NodeLab;
  let node: LabNode;
  beforeAll(async () => {
    lab = await nodeLab({
      bpf: true,
      nodes: 1,
      pools: [
        { cidr: "10.88.0.0/24", vxlanMode: "Never", blockSize: 28 },
        { cidr: "fd88::/112", vxlanMode: "Never" },
      ],
    });
    node = lab.nodes[0]!;
    await node.start();
  }, 60_000);
  afterAll(() => lab?.close());

  it("two pods reach each other and their node, with both families", async () => {
    const [a, b] = [await lab.addPod("a", node), await lab.addPod("b", node)];
    console.log(a.addresses, b.addresses);
    const ends = [await serve(b, 8080, 4), await serve(b, 8081, 6)];
    console.log(await node.vendor("node", "show", "endpoints"), await node.vendor("node", "show", "counters"));
    expect(await ask(a, b.addresses[0]!, 8080)).toBe(`b saw ${a.addresses[0]}`);
    expect(await ask(a, b.addresses[1]!, 8081)).toBe(`b saw ${a.addresses[1]}`);
    expect(await ask(node, b.addresses[0]!, 8080)).toMatch(/^b saw/);
    for (const end of ends) end();
    await lab.removePod(a);
    await lab.removePod(b);
  }, 60_000);
});
