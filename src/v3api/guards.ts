import { causeOf } from "../aggregated/v3-causes.ts";
import type { V3Kind } from "../aggregated/v3-kinds.ts";
import { type Names, vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import { orchestratorTier, tierOf } from "../api/resources/policy-names.ts";
import { profileSource } from "../api/resources/profile-names.ts";
import { fieldCause, shown } from "../api/schema/schema-cause.ts";
import type { StatusCause } from "../api/status.ts";
import { ipPoolSetProblems } from "../api/validation/ip-pool.ts";
import { isBuiltInTier } from "../api/validation/tier.ts";
import type { UserInfo } from "../apiserver/call.ts";
import { conflict, forbidden } from "../apiserver/status-errors.ts";
import type { Backend } from "./backend.ts";

/**
 * Rules that need more than the object itself: the user, and other objects. A write follows the read, so between the two a
 * tier may be deleted or a pool created; what then does not fit is shown by the operator's status and does not affect traffic.
 */
export class Guards {
  readonly #backend: Backend;
  readonly #kinds: readonly V3Kind[];
  readonly #names: Names;

  constructor(backend: Backend, kinds: readonly V3Kind[], names: Names = vendorNames) {
    this.#backend = backend;
    this.#kinds = kinds;
    this.#names = names;
  }

  /** Objects that only other programs may write, whatever is in them. */
  mayTouch(kind: V3Kind, name: string, user: UserInfo): void {
    if (kind.tiered && orchestratorTier(name) !== undefined) {
      const why = "it mirrors a Kubernetes policy; change that one";
      throw forbidden(kind.served, name, why);
    }
    if (kind.noun !== "profile" || this.#isControllers(user)) return;
    if (profileSource(name) !== undefined) {
      throw forbidden(kind.served, name, "it mirrors a namespace or a service account; label that one");
    }
    if (name === this.#names.hostEndpoints.allowAllProfile) {
      throw forbidden(kind.served, name, "it is built in and read-only; use a profile of another name");
    }
  }

  /** What is wrong with an object among the others. Both are as people see them. */
  async causes(kind: V3Kind, object: KubeObject, old: KubeObject | undefined): Promise<StatusCause[]> {
    if (kind.tiered && !old) return await this.#tierCauses(object);
    if (kind.noun === "ipPool") return await this.#poolCauses(kind, object, old);
    return [];
  }

  async mayDelete(kind: V3Kind, name: string, user: UserInfo): Promise<void> {
    this.mayTouch(kind, name, user);
    if (kind.noun !== "tier") return;
    if (isBuiltInTier(name)) throw forbidden(kind.served, name, "it is a built-in tier and cannot be deleted");
    const held = await this.#policiesOf(name);
    const [first] = held;
    if (first === undefined) return;
    const few = held.length === 1 ? "a policy" : `${held.length} policies`;
    throw conflict(kind.served, name, `the tier still has ${few}, such as ${first}; delete or move them first`);
  }

  #isControllers(user: UserInfo): boolean {
    const { namespaces, workloads } = this.#names;
    return user.name === `system:serviceaccount:${namespaces.system}:${workloads.kubeControllers}`;
  }

  async #tierCauses(object: KubeObject): Promise<StatusCause[]> {
    const tier = tierOf(object.metadata.name ?? object.metadata.generateName ?? "");
    const tiers = this.#kinds.find(({ noun }) => noun === "tier");
    if (isBuiltInTier(tier) || (tiers && (await this.#backend.find(tiers, { name: tier })))) return [];
    return [fieldCause("spec.tier", `Not found: ${shown(tier)}`)];
  }

  async #poolCauses(kind: V3Kind, object: KubeObject, old: KubeObject | undefined): Promise<StatusCause[]> {
    const pool = object as KubeObject & IPPool;
    if (typeof pool.spec?.cidr !== "string") return [];
    const before = old as (KubeObject & IPPool) | undefined;
    if (before && before.spec.disabled === pool.spec.disabled && before.spec.cidr === pool.spec.cidr) return [];
    const others = (await this.#backend.all(kind)).filter(({ metadata }) => metadata.name !== pool.metadata.name);
    return others.flatMap((other) =>
      ipPoolSetProblems([other as KubeObject & IPPool, pool]).map((problem) =>
        causeOf({ ...problem, message: `${problem.message.replace(/\.$/, "")} (pool ${other.metadata.name})` }, pool),
      ),
    );
  }

  async #policiesOf(tier: string): Promise<string[]> {
    const lists = await Promise.all(
      this.#kinds
        .filter(({ tiered }) => tiered)
        .map(async (kind) =>
          (await this.#backend.all(kind))
            .filter(({ metadata }) => tierOf(metadata.name) === tier)
            .map(
              ({ metadata: { name, namespace } }) => `${kind.served.kind} ${namespace ? `${namespace}/` : ""}${name}`,
            ),
        ),
    );
    return lists.flat();
  }
}
