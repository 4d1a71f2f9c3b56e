import type { Names } from "../api/names.ts";
import type { KubeObject, ObjectRef } from "../api/object.ts";
import type { LocalPod } from "./addresses/pod-addresses.ts";
import { Calculation, type CalculationOptions } from "./calculation.ts";
import { inputNames, kindOf } from "./calculator-kinds.ts";
import { keyOf } from "./input-table.ts";
import type { ModelDelta } from "./model.ts";

/**
 * Objects in, what changed in the model out. What it gives depends on the objects it has now, never on the order or the history they came
 * in: a new calculator with the same objects has the same model.
 */
export interface Calculator {
  /** An object of one of `calculatorKinds`, new or changed; others are ignored. It is kept, so it must not be changed afterwards. */
  set(object: KubeObject): void;
  remove(kind: { group: string; kind: string }, ref: ObjectRef): void;
  /** What this node's CNI plugin has made for a pod, `NAMESPACE/NAME`; undefined where it is undone. Beats what the pod's object says. */
  setLocalPod(key: string, record: LocalPod | undefined): void;
  /**
   * By address of this node's pods, the interfaces that another CNI plugin connected them by, as the routes of the node say. In place of those
   * given before.
   */
  setPodInterfaces(interfaces: ReadonlyMap<string, string>): void;
  /** Addresses by which this node reaches the API server: never a pod's, never a Service's. In place of those given before. */
  setApiServers(addresses: readonly string[]): void;
  /** Every kind has been listed once. */
  inSync(): void;
  /** What changed since the last time; undefined where nothing did. All work happens here, so many changes cost little more than one. */
  takeDelta(): ModelDelta | undefined;
}

export function createCalculator(node: string, names: Names, options: CalculationOptions = {}): Calculator {
  const inputOf = inputNames(names);
  const calculation = new Calculation(node, names, options);
  return {
    set(object) {
      const input = inputOf(kindOf(object));
      if (input) calculation.set(input, keyOf(object.metadata), object);
    },
    remove(kind, ref) {
      const input = inputOf(kind);
      if (input) calculation.remove(input, keyOf(ref));
    },
    setLocalPod: (key, record) => calculation.setLocalPod(key, record),
    setPodInterfaces: (interfaces) => calculation.setPodInterfaces(interfaces),
    setApiServers: (addresses) => calculation.setApiServers(addresses),
    inSync: () => calculation.inSync(),
    takeDelta: () => calculation.takeDelta(),
  };
}
