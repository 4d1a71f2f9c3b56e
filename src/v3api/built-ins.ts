import type { V3Kind } from "../aggregated/v3-kinds.ts";
import { type Names, vendorNames } from "../api/names.ts";
import { groupVersion, type KubeObject } from "../api/object.ts";
import { BUILT_IN_TIERS } from "../api/validation/tier.ts";
import type { Client } from "../cluster/client.ts";
import { isAlreadyExists } from "../cluster/failures.ts";

/** What every cluster has: the tiers policies can always be in, and the profile that allows everything. Made where missing, else left alone. */
export async function createBuiltIns(
  client: Client,
  kinds: readonly V3Kind[],
  names: Names = vendorNames,
): Promise<void> {
  const { allowAllProfile } = names.hostEndpoints;
  const allow = [{ action: "Allow" }];
  const wanted: [V3Kind["noun"], string, object][] = [
    ...Object.entries(BUILT_IN_TIERS).map(([name, spec]): [V3Kind["noun"], string, object] => ["tier", name, spec]),
    ["profile", allowAllProfile, { ingress: allow, egress: allow }],
  ];
  for (const [noun, name, spec] of wanted) {
    const stored = kinds.find((kind) => kind.noun === noun)?.stored;
    if (!stored) continue;
    const object: KubeObject = { apiVersion: groupVersion(stored), kind: stored.kind, metadata: { name }, spec };
    await client.create(stored, object).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  }
}
