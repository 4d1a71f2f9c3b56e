import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { v3Places } from "../../src/api/resources/v3-places.ts";
import { CONFIG_MAPS } from "../../src/cluster/kinds.ts";
import { ownedThroughV3 } from "../../src/procedures/owned-through-v3.ts";
import { settledState, untilState } from "../support/procedure-state.ts";
import { type UpgradeScenario, upgradeScenario } from "../support/upgrade-scenario.ts";

/** A team hung notes on its policies. Somebody upgrades with vendorctl, or with another tool between the two halves. */

const MIGRATE = ["migrate", "owner-references"];
const policies = v3Places(vendorNames).find(({ noun }) => noun === "networkPolicy")!.served;
const notes = { name: "allow-web-notes", namespace: "shop" };

describe("owner references around an upgrade", () => {
  let story: UpgradeScenario;
  beforeAll(async () => {
    story = await upgradeScenario("v3.27", "operator");
  });
  afterAll(() => story.close());
  const owned = () => ownedThroughV3(story.cluster.client, vendorNames);

  it("the second half is refused while there is nothing to put back", async () => {
    const { exit, err } = await story.run(...MIGRATE, "--phase", "after", "-y");
    expect({ exit, err }).toMatchObject({ exit: 3, err: expect.stringContaining("[OWNER_REFERENCES_NONE_SAVED]") });
  });

  it("the first half saves and strips, and is taken back by rollback", async () => {
    const before = await settledState(story.cluster.client);
    const found = await owned();
    expect(found.map(({ name }) => name).sort()).toEqual(["allow-web-notes", "metadata-review", "partners"]);
    const file = join(story.file("marker", "").replace(/marker$/, ""), "references.json");
    const said = await story.ok(...MIGRATE, "--phase", "before", "--save-to", file, "-y");
    expect(said).toContain("vendorctl migrate owner-references --phase after");
    expect(await owned()).toEqual([]);
    expect(existsSync(file)).toBe(true);
    expect(JSON.parse(readFileSync(file, "utf8")).references).toEqual(found);
    await story.ok("rollback", "-y");
    expect(await owned()).toEqual(found);
    expect(await untilState(story.cluster.client, before)).toEqual([]);
  });

  it("between the halves the cluster must really have been upgraded", async () => {
    await story.ok(...MIGRATE, "--phase", "before", "-y");
    const { exit, err } = await story.run(...MIGRATE, "--phase", "after", "-y");
    expect({ exit, err }).toMatchObject({ exit: 3, err: expect.stringContaining("[OWNER_REFERENCES_TOO_EARLY]") });
  });

  it("after the upgrade they are added again with the new UIDs, and nothing was lost", async () => {
    const old = await story.cluster.client.get<KubeObject>(policies, { name: "allow-web", namespace: "shop" });
    await story.ok("upgrade", "-y");
    const said = await story.ok(...MIGRATE, "--phase", "after", "-y");
    expect(said).toContain("all 3 objects are unchanged; 0 lost");
    const now = await story.cluster.client.get<KubeObject>(policies, { name: "allow-web", namespace: "shop" });
    expect(now.metadata.uid).not.toBe(old.metadata.uid);
    const { metadata } = await story.cluster.client.get<KubeObject>(CONFIG_MAPS, notes);
    expect(metadata.ownerReferences).toEqual([expect.objectContaining({ name: "allow-web", uid: now.metadata.uid })]);
    const late = await story.run(...MIGRATE, "--phase", "before", "-y");
    expect(late).toMatchObject({ exit: 3, err: expect.stringContaining("[OWNER_REFERENCES_TOO_LATE]") });
  });
});

it("vendorctl upgrade has it built in: what is owned survives the change of UIDs", async () => {
  const story = await upgradeScenario("v3.27", "operator");
  try {
    const before = await story.cluster.client.get<KubeObject>(CONFIG_MAPS, notes);
    const said = await story.ok("upgrade", "-y");
    expect(said).toContain("0 lost");
    const after = await story.cluster.client.get<KubeObject>(CONFIG_MAPS, notes);
    expect(after.metadata.uid).toBe(before.metadata.uid);
    expect(after.metadata.ownerReferences?.[0]?.uid).not.toBe(before.metadata.ownerReferences?.[0]?.uid);
  } finally {
    await story.close();
  }
});
