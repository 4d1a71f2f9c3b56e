import type { Access } from "../../aggregated/access.ts";
import { FLOW_LOGS_API, type Noun, vendorNames } from "../../api/names.ts";
import type { ResourceKind } from "../../api/object.ts";
import type { PolicyReference } from "../../api/protocol/flow-explanation.ts";
import { RESOURCES } from "../../api/resources/all.ts";
import { profileSource } from "../../api/resources/profile-names.ts";
import { placesOf } from "../../api/resources/resource.ts";
import { v3Place } from "../../api/resources/v3-places.ts";
import type { UserInfo } from "../../apiserver/call.ts";
import { NETWORK_POLICIES } from "../../cluster/kinds.ts";

const NOUNS: Readonly<Record<string, Noun>> = {
  NetworkPolicy: "networkPolicy",
  GlobalNetworkPolicy: "globalNetworkPolicy",
  StagedNetworkPolicy: "stagedNetworkPolicy",
  StagedGlobalNetworkPolicy: "stagedGlobalNetworkPolicy",
  StagedKubernetesNetworkPolicy: "stagedKubernetesNetworkPolicy",
  Profile: "profile",
};
const FLOWS = { ...FLOW_LOGS_API, plural: "flows" };
/** Asked one by one, of one answer: what is beyond it counts as not to be read. */
const MOST_REVIEWS = 60;

/** What one reader may read, for one answer. */
export interface PolicyAccess {
  /** Whether the reader may get this policy, as it is served or as it is stored. */
  mayRead(policy: PolicyReference): Promise<boolean>;
  /** Whether the reader may list flows of a namespace. */
  mayListFlows(namespace: string): Promise<boolean>;
}

export function policyAccess(access: Access, user: UserInfo): PolicyAccess {
  const known = new Map<string, Promise<boolean>>();
  const may = (verb: string, kind: Pick<ResourceKind, "group" | "version" | "plural">, namespace = "", name = "") => {
    const key = [verb, kind.group, kind.plural, namespace, name].join(" ");
    const asked = known.get(key);
    if (asked) return asked;
    if (name !== "" && known.size >= MOST_REVIEWS) return Promise.resolve(false);
    const { group, version, plural } = kind;
    const answer = access.allows(user, {
      resource: true,
      verb,
      group,
      version,
      plural,
      subresource: "",
      namespace,
      name,
    });
    known.set(key, answer);
    return answer;
  };
  /** Who may get all of a namespace is asked about once. */
  const mayGet = async (kind: ResourceKind, namespace: string, name: string) =>
    (await may("get", kind, namespace)) || (await may("get", kind, namespace, name));
  return {
    async mayRead({ kind, tier, namespace, name }) {
      if (kind === "KubernetesNetworkPolicy") return await mayGet(NETWORK_POLICIES, namespace, name);
      const resource = RESOURCES.find(({ noun }) => noun === NOUNS[kind]);
      if (!resource) return false;
      const { stored, served } = placesOf(resource, vendorNames);
      const source = kind === "Profile" ? profileSource(name) : undefined;
      // Calculated for each namespace, and the same for all.
      if (source) return await may("list", FLOWS, source.namespace);
      if (kind === "Profile") return (await mayGet(served, "", name)) || (await mayGet(stored, "", name));
      if (!v3Place(resource, vendorNames).tiered)
        return (await mayGet(served, namespace, name)) || (await mayGet(stored, namespace, name));
      // As served: by the policy, and by its tier.
      const inTier = { ...served, plural: `tier.${served.plural}` };
      const tiers = { ...served, plural: vendorNames.kinds.tier.plural };
      const asServed =
        (await mayGet(served, namespace, name)) &&
        (await may("get", tiers, "", tier)) &&
        ((await may("get", inTier, namespace, `${tier}.*`)) || (await may("get", inTier, namespace, name)));
      return asServed || (await mayGet(stored, namespace, name));
    },
    mayListFlows: (namespace) => may("list", FLOWS, namespace),
  };
}
