import { afterEach, describe, expect, it } from "vitest";
import { type OperatorWorld, operatorWorld } from "./testing/operator-world.ts";

let world: OperatorWorld;
afterEach(() => world.stop());

describe("an installation", () => {
  it("with BPF and the v3 API ends with every part available, and then costs no more writes", async () => {
    world = await operatorWorld();
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "BPF" } });
    await world.ask("apiServer");
    await world.untilStatus("network", "Available");
    await world.untilStatus("apiserver", "Available");
    await world.untilStatus("ippools", "Available");
    for (const part of ["flow-logs", "flow-ui", "service-proxy"]) await world.untilStatus(part, "NotInstalled");
    await world.settled();
    const before = world.writes.length;
    // Anything that changes makes the operator look at every part again.
    await world.kubectl.patch(
      { group: "", version: "v1", kind: "Node", plural: "nodes", namespaced: false },
      { name: "node-0" },
      { type: "merge", patch: { metadata: { labels: { touched: "yes" } } } },
    );
    await world.settled();
    expect(world.writes.slice(before)).toEqual([]);
  });
});
