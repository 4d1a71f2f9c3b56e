import { afterEach, describe, expect, it } from "vitest";
import { readActualRuleset } from "../../src/dataplane/nft/actual-ruleset.ts";
import { desiredRuleset } from "../../src/dataplane/nft/desired-ruleset.ts";
import { withDenials } from "../../src/dataplane/nft/flows/denials.ts";
import { transaction } from "../../src/dataplane/nft/transaction.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { policyProgramCases } from "../calc/policy-program-cases.ts";
import { randomCluster } from "../calc/random-cluster.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
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
    let written = readActualRuleset([]);
    for (let seed = 1; seed <= WORLDS; seed++) {
      const world = randomCluster(seed);
      const plain = desiredRuleset(modelOf(world), { hostInterfaces: [world.uplink] });
      const wanted = withDenials(plain, seed % 2 === 0).rules;
      const { commands, after } = transaction(TABLE, wanted, written);
      await nft.run(commands.join("\n"));
      written = readActualRuleset(await nft.list(`list table inet ${TABLE}`));
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
      const wanted = desiredRuleset(model, { hostInterfaces: [] });
      const { commands } = transaction(TABLE, wanted, readActualRuleset([]));
      await nft.run(commands.join("\n"));
      const written = readActualRuleset(await nft.list(`list table inet ${TABLE}`));
      expect({ id, again: transaction(TABLE, wanted, written).commands }).toEqual({ id, again: [] });
      await nft.run(`delete table inet ${TABLE}`);
    }
    nft.close();
  });
});
