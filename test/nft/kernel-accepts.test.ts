import { afterEach, describe, expect, it } from "vitest";
import { readBack } from "../../src/dataplane/nft/read-back.ts";
import { transaction } from "../../src/dataplane/nft/transaction.ts";
import { wantedRuleset } from "../../src/dataplane/nft/wanted-ruleset.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns-port.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import { policyProgramCases } from "../policy/policy-program-cases.ts";
import { randomWorld } from "../policy/random-world.ts";
import { modelOf } from "./random-model.ts";

const WORLDS = 60;
const TABLE = "story";
const reason = whyNoNftables();

describe.skipIf(reason)(`what the kernel makes of our rules${reason ? ` (${reason})` : ""}`, () => {
  let netns: Netns | undefined;
  afterEach(() => {
    netns?.close();
    if (netns) realKernel().netns.delete(netns.name);
    netns = undefined;
  });

  it("accepts the rules of random worlds, each by what differs from the one before, and lists what we meant", async () => {
    const kernel = realKernel();
    netns = kernel.netns.create(`vt-${process.pid}-accepts`);
    const nft = kernel.nft(netns);
    let written = readBack([]);
    for (let seed = 1; seed <= WORLDS; seed++) {
      const world = randomWorld(seed);
      const wanted = wantedRuleset(modelOf(world), { hostInterfaces: [world.uplink] });
      const { commands, after } = transaction(TABLE, wanted, written);
      await nft.run(commands.join("\n"));
      written = readBack(await nft.list(`list table inet ${TABLE}`));
      expect({ seed, again: transaction(TABLE, wanted, written).commands }).toEqual({ seed, again: [] });
      expect(written.chains).toEqual(after.chains);
    }
    nft.close();
  });

  it("accepts the rules of all public policy program cases", async () => {
    const cases = policyProgramCases()?.inScope ?? [];
    const kernel = realKernel();
    netns = kernel.netns.create(`vt-${process.pid}-cases`);
    const nft = kernel.nft(netns);
    for (const { id, model, hook } of cases) {
      const { direction, tiers, profiles } = hook.workload ?? { direction: "ingress", tiers: [], profiles: [] };
      model.endpoints.set("pod", {
        ...{ id: "pod", interfaceName: "ven1", mac: null, addresses: ["10.0.0.1/32"] },
        ...{
          ingress: { tiers: [], profiles: [] },
          egress: { tiers: [], profiles: [] },
          [direction]: { tiers, profiles },
        },
      });
      const wanted = wantedRuleset(model, { hostInterfaces: [] });
      const { commands } = transaction(TABLE, wanted, readBack([]));
      await nft.run(commands.join("\n"));
      const written = readBack(await nft.list(`list table inet ${TABLE}`));
      expect({ id, again: transaction(TABLE, wanted, written).commands }).toEqual({ id, again: [] });
      await nft.run(`delete table inet ${TABLE}`);
    }
    nft.close();
  });
});
