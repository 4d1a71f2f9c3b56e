import { storedPolicyName, tierOf } from "../api/resources/policy-names.ts";
import type { UserInfo } from "../apiserver/call.ts";
import type { ResourceRequest } from "../apiserver/request-info.ts";
import { forbidden } from "../apiserver/status-errors.ts";
import type { Access } from "./access.ts";
import type { V3Kind } from "./v3-kinds.ts";

/** What a request wants of policies. */
export type PolicyRequest = Pick<ResourceRequest, "verb" | "namespace">;

/**
 * Rights on policies are given per tier: one needs `get` on the tier, and the verb on `tier.networkpolicies` (or `tier.globalnetworkpolicies`)
 * either for this policy's full name, `TIER.NAME`, or for all of the tier, `TIER.*`.
 */
export class TierAccess {
  readonly #access: Access;
  readonly #kinds: readonly V3Kind[];

  constructor(access: Access, kinds: readonly V3Kind[]) {
    this.#access = access;
    this.#kinds = kinds;
  }

  /** `name` is empty where the request is for whatever there is. */
  async allows(user: UserInfo, kind: V3Kind, request: PolicyRequest, tier: string, name = ""): Promise<boolean> {
    // A version without tiers gives rights on policies as on anything else.
    if (!this.#kinds.some(({ noun }) => noun === "tier")) return true;
    const { group, version } = kind.served;
    const base = { resource: true, group, version, subresource: "" } as const;
    const asPolicy = {
      ...base,
      verb: request.verb,
      plural: `tier.${kind.served.plural}`,
      namespace: request.namespace,
    };
    const [seesTier, allOfTier, thisOne] = await Promise.all([
      this.#access.allows(user, { ...base, verb: "get", plural: "tiers", namespace: "", name: tier }),
      this.#access.allows(user, { ...asPolicy, name: `${tier}.*` }),
      name === "" ? false : this.#access.allows(user, { ...asPolicy, name: storedPolicyName(name) }),
    ]);
    return seesTier && (allOfTier || thisOne);
  }

  async mustAllow(
    user: UserInfo,
    kind: V3Kind,
    request: PolicyRequest,
    name: string,
    tier = tierOf(name),
  ): Promise<void> {
    if (await this.allows(user, kind, request, tier, name)) return;
    const { group, plural } = kind.served;
    const named = name === "" ? `"${tier}.*"` : `"${storedPolicyName(name)}" or "${tier}.*"`;
    const why = `User "${user.name}" cannot ${request.verb} policies of tier "${tier}": that takes get on tiers.${group} "${tier}" and ${request.verb} on tier.${plural}.${group} ${named}`;
    throw forbidden({ group, plural }, name, why);
  }
}
