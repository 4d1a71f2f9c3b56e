import type { KubeObject } from "../../api/object.ts";
import { type LabelSelector, labelSelectorOf, matchesLabels } from "../../api/schema/selector.ts";
import type { Admission, Change, UserInfo } from "../call.ts";
import type { Store } from "../storage/store.ts";
import { refuseEscalation } from "./escalation.ts";
import { type Attributes, covers, type PolicyRule } from "./policy-rule.ts";

const GROUP = "rbac.authorization.k8s.io";

export interface Decision {
  allowed: boolean;
  reason: string;
}

export interface Authorizer {
  authorize(user: UserInfo, attributes: Attributes): Decision;
  /** Every rule that holds for the user in this namespace: what `kubectl auth can-i --list` shows. */
  rulesFor(user: UserInfo, namespace: string): PolicyRule[];
}

interface Binding {
  /** Undefined for a ClusterRoleBinding. */
  namespace: string | undefined;
  describe: string;
  rules: readonly PolicyRule[];
}

/** For an API that delegates authorization. */
export const allowEverything: Authorizer = {
  authorize: () => ({ allowed: true, reason: "" }),
  rulesFor: () => [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
};

/** Role-based access control over the roles and bindings in the store, indexed by subject and rebuilt when one changes. */
export class Rbac implements Authorizer, Admission {
  readonly #store: Store;
  #bySubject: Map<string, Binding[]> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  admit(change: Change): void {
    if (change.kind.group !== GROUP || change.operation === "DELETE") return;
    if (change.user.groups.includes("system:masters")) return;
    refuseEscalation(change, this, (ref, namespace) =>
      ref.kind === "ClusterRole"
        ? this.#rulesByName("clusterroles").get(`/${ref.name}`)
        : this.#rulesByName("roles").get(`${namespace}/${ref.name}`),
    );
  }

  committed(change: Change): void {
    if (change.kind.group === GROUP) this.#bySubject = undefined;
  }

  authorize(user: UserInfo, attributes: Attributes): Decision {
    if (user.groups.includes("system:masters")) return { allowed: true, reason: "" };
    const namespace = attributes.resource ? attributes.namespace : "";
    for (const binding of this.#bindingsOf(user)) {
      if (binding.namespace !== undefined && (binding.namespace !== namespace || !attributes.resource)) continue;
      if (binding.rules.some((rule) => covers(rule, attributes))) {
        return { allowed: true, reason: `RBAC: allowed by ${binding.describe}` };
      }
    }
    return { allowed: false, reason: "" };
  }

  rulesFor(user: UserInfo, namespace: string): PolicyRule[] {
    if (user.groups.includes("system:masters")) {
      return [
        { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
        { verbs: ["*"], nonResourceURLs: ["*"] },
      ];
    }
    const found: PolicyRule[] = [];
    for (const binding of this.#bindingsOf(user)) {
      if (binding.namespace === undefined || binding.namespace === namespace) found.push(...binding.rules);
    }
    return found;
  }

  *#bindingsOf(user: UserInfo): Iterable<Binding> {
    this.#bySubject ??= this.#index();
    yield* this.#bySubject.get(`User:${user.name}`) ?? [];
    for (const group of user.groups) yield* this.#bySubject.get(`Group:${group}`) ?? [];
  }

  #index(): Map<string, Binding[]> {
    const clusterRoles = this.#rulesByName("clusterroles");
    const roles = this.#rulesByName("roles");
    const index = new Map<string, Binding[]>();
    for (const plural of ["clusterrolebindings", "rolebindings"]) {
      for (const object of this.#objects(plural)) {
        const bound = bindingOf(object, clusterRoles, roles);
        for (const subject of subjectKeys(object)) {
          const known = index.get(subject);
          if (known) known.push(bound);
          else index.set(subject, [bound]);
        }
      }
    }
    return index;
  }

  #rulesByName(plural: string): Map<string, PolicyRule[]> {
    const objects = this.#objects(plural) as Role[];
    return new Map(
      objects.map((role) => [`${role.metadata.namespace ?? ""}/${role.metadata.name}`, rulesOf(role, objects)]),
    );
  }

  #objects(plural: string): KubeObject[] {
    return this.#store.list(`${GROUP}/${plural}`).map((stored) => JSON.parse(stored.body.toString()) as KubeObject);
  }
}

interface Role extends KubeObject {
  rules?: PolicyRule[] | null;
  aggregationRule?: { clusterRoleSelectors?: LabelSelector[] };
}

/** An aggregated role has the rules of every role its selectors find. Those may be aggregated too: `admin` has all of `edit`, which has all of `view`. */
function rulesOf(role: Role, all: readonly Role[], within: readonly Role[] = []): PolicyRule[] {
  const selectors = role.aggregationRule?.clusterRoleSelectors;
  if (!selectors) return role.rules ?? [];
  const above = [...within, role];
  return all
    .filter((other) => !above.includes(other) && selectors.some((selector) => selects(selector, other)))
    .flatMap((other) => rulesOf(other, all, above));
}

function selects(selector: LabelSelector, role: Role): boolean {
  const requirements = labelSelectorOf(selector);
  return requirements !== "nothing" && matchesLabels(requirements, role.metadata.labels);
}

interface RoleBinding extends KubeObject {
  roleRef: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace?: string }[] | null;
}

function bindingOf(
  object: KubeObject,
  clusterRoles: Map<string, PolicyRule[]>,
  roles: Map<string, PolicyRule[]>,
): Binding {
  const { roleRef, metadata, kind } = object as RoleBinding;
  const rules =
    roleRef.kind === "ClusterRole"
      ? clusterRoles.get(`/${roleRef.name}`)
      : roles.get(`${metadata.namespace ?? ""}/${roleRef.name}`);
  const where = metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name;
  return {
    namespace: metadata.namespace,
    describe: `${kind} "${where}" of ${roleRef.kind} "${roleRef.name}"`,
    rules: rules ?? [],
  };
}

function subjectKeys(object: KubeObject): string[] {
  return ((object as RoleBinding).subjects ?? []).map((subject) =>
    subject.kind === "ServiceAccount"
      ? `User:system:serviceaccount:${subject.namespace ?? object.metadata.namespace}:${subject.name}`
      : `${subject.kind}:${subject.name}`,
  );
}
