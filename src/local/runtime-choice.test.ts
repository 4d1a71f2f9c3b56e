import { expect, it } from "vitest";
import { chooseRuntime } from "./runtime-choice.ts";

it("simulated nodes that were asked for need no reason", async () => {
  expect(await chooseRuntime({ runtime: "paper", nodes: 3 })).toEqual({ runtime: "paper" });
});

it.each([
  ["older programs", { nodes: 3, installed: "v3.27" }, /older versions/],
  ["old kernels", { nodes: 3, oldNodes: 1 }, /not too old/],
  ["Windows", { nodes: 3, windowsNodes: 1 }, /Windows/],
  ["very many nodes", { nodes: 100 }, /too many for one machine/],
])(
  "%s can only be had on paper: chosen with the reason, refused where real nodes were asked for",
  async (_, asked, why) => {
    const chosen = await chooseRuntime({ runtime: "auto", ...asked });
    expect(chosen.runtime).toBe("paper");
    expect(chosen.why).toMatch(why);
    await expect(chooseRuntime({ runtime: "netns", ...asked })).rejects.toMatchObject({
      code: "REAL_NODES_IMPOSSIBLE",
    });
    const refused = { code: "CONTAINERS_IMPOSSIBLE", message: expect.stringMatching(why) as string };
    await expect(chooseRuntime({ runtime: "containerd", ...asked })).rejects.toMatchObject(refused);
  },
);
