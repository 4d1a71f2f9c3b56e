import type { Names } from "../api/names.ts";
import type { KubeObject, ObjectRef } from "../api/object.ts";
import type { LocalPod } from "./addresses/pod-addresses.ts";
import type { Calculator } from "./calculator.ts";
import { type InputName, inputNames, kindOf, NOT_OF_VERDICTS } from "./calculator-kinds.ts";
import type { DataplaneModel } from "./model.ts";
import { ModelCopy } from "./model-copy.ts";
import { asEnforced, policyIdOf, type StagedKind, stagedKinds } from "./policy/staged-policy.ts";

/** What a node would enforce if its staged policies were enforced. */
export interface StagedModel {
  model: DataplaneModel;
  /** Kinds of staged policies, by `Policy.id` of what each would be, or would remove. */
  staged: ReadonlyMap<string, string>;
  /** Another object after each change: answers are kept by it. */
  version: object;
}

export interface StagedCalculator extends Calculator {
  /** Undefined while nothing is staged. What changed since the last call is calculated in it. */
  staged(): StagedModel | undefined;
}

export interface StagedParts {
  names: Names;
  /** Another calculator with the options of the first. */
  create(): Calculator;
  /** All that the first was given, as it is now. */
  objects(): Iterable<KubeObject>;
}

/**
 * A calculator that knows, while policies are staged, what they would do: by a second calculation of the same objects, in which they are in the place
 * of the enforced ones of their names. The first one, and so the data plane, never sees them.
 */
export function stagedCalculator(enforced: Calculator, parts: StagedParts): StagedCalculator {
  return new WithStaged(enforced, parts);
}

class WithStaged implements StagedCalculator {
  readonly #enforced: Calculator;
  readonly #parts: StagedParts;
  readonly #kinds: readonly StagedKind[];
  readonly #inputOf: (kind: { group: string; kind: string }) => InputName | undefined;
  /** Those that change something, by `Policy.id`. */
  readonly #policies = new Map<string, StagedPolicy>();
  readonly #localPods = new Map<string, LocalPod>();
  #interfaces: ReadonlyMap<string, string> | undefined;
  #apiServers: readonly string[] = [];
  #second: Second | undefined;

  constructor(enforced: Calculator, parts: StagedParts) {
    this.#enforced = enforced;
    this.#parts = parts;
    this.#kinds = stagedKinds(parts.names);
    this.#inputOf = inputNames(parts.names);
  }

  set(object: KubeObject): void {
    const kind = this.#stagedKind(kindOf(object));
    if (kind) this.#stage(kind, object.metadata, asEnforced(kind, object));
    else this.#enforced.set(object);
    if (!kind && this.#second) this.#set(this.#second, object);
  }

  remove(kind: { group: string; kind: string }, ref: ObjectRef): void {
    const staged = this.#stagedKind(kind);
    if (staged) this.#stage(staged, ref, "ignored");
    else this.#removeEnforced(kind, ref);
  }

  #removeEnforced(kind: { group: string; kind: string }, ref: ObjectRef): void {
    this.#enforced.remove(kind, ref);
    const id = this.#policyId(kind, ref);
    if (id !== undefined) this.#second?.enforced.delete(id);
    if (id === undefined || !this.#policies.has(id)) this.#second?.calculator.remove(kind, ref);
  }

  setLocalPod(key: string, record: LocalPod | undefined): void {
    if (record) this.#localPods.set(key, record);
    else this.#localPods.delete(key);
    for (const calculator of this.#both()) calculator.setLocalPod(key, record);
  }

  setPodInterfaces(interfaces: ReadonlyMap<string, string>): void {
    this.#interfaces = interfaces;
    for (const calculator of this.#both()) calculator.setPodInterfaces(interfaces);
  }

  setApiServers(addresses: readonly string[]): void {
    this.#apiServers = addresses;
    for (const calculator of this.#both()) calculator.setApiServers(addresses);
  }

  inSync(): void {
    for (const calculator of this.#both()) calculator.inSync();
  }

  takeDelta(): ReturnType<Calculator["takeDelta"]> {
    return this.#enforced.takeDelta();
  }

  staged(): StagedModel | undefined {
    if (this.#policies.size === 0) {
      this.#second = undefined;
      return undefined;
    }
    this.#second ??= this.#begin();
    const { calculator, model } = this.#second;
    const delta = calculator.takeDelta();
    if (delta) {
      model.apply(delta);
      this.#second.version = {};
    }
    const staged = new Map([...this.#policies].map(([id, { kind }]) => [id, kind.staged.kind]));
    return { model, staged, version: this.#second.version };
  }

  #begin(): Second {
    const calculator = this.#parts.create();
    const second = { calculator, model: new ModelCopy(), enforced: new Map(), version: {} };
    calculator.setApiServers(this.#apiServers);
    for (const [key, record] of this.#localPods) calculator.setLocalPod(key, record);
    for (const object of this.#parts.objects()) this.#set(second, object);
    for (const { object } of this.#policies.values()) if (object) calculator.set(object);
    if (this.#interfaces) calculator.setPodInterfaces(this.#interfaces);
    calculator.inSync();
    return second;
  }

  #set(second: Second, object: KubeObject): void {
    const input = this.#inputOf(kindOf(object));
    if (input && NOT_OF_VERDICTS.includes(input)) return;
    const id = this.#policyId(kindOf(object), object.metadata);
    if (id !== undefined) second.enforced.set(id, object);
    if (id === undefined || !this.#policies.has(id)) second.calculator.set(object);
  }

  #stage(kind: StagedKind, ref: ObjectRef, object: ReturnType<typeof asEnforced>): void {
    const id = policyIdOf(kind, ref);
    if (object === "ignored") this.#policies.delete(id);
    else this.#policies.set(id, { kind, object });
    if (!this.#second) return;
    const now = object === "ignored" ? this.#second.enforced.get(id) : object;
    if (now) this.#second.calculator.set(now);
    else this.#second.calculator.remove(kind.enforced, ref);
    this.#second.version = {};
  }

  #stagedKind({ group, kind }: { group: string; kind: string }): StagedKind | undefined {
    return this.#kinds.find(({ staged }) => staged.kind === kind && staged.group === group);
  }

  /** Undefined: it is no policy that can be staged. */
  #policyId({ group, kind }: { group: string; kind: string }, ref: ObjectRef): string | undefined {
    const row = this.#kinds.find(({ enforced }) => enforced.kind === kind && enforced.group === group);
    return row && policyIdOf(row, ref);
  }

  #both(): Calculator[] {
    return this.#second ? [this.#enforced, this.#second.calculator] : [this.#enforced];
  }
}

interface StagedPolicy {
  kind: StagedKind;
  /** Undefined: the enforced policy would be gone. */
  object: KubeObject | undefined;
}

interface Second {
  calculator: Calculator;
  model: ModelCopy;
  /** Enforced policies, by `Policy.id`: what is back when nothing is staged in their place. */
  enforced: Map<string, KubeObject>;
  version: object;
}
