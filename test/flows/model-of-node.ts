import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";

/** What the agent of a node enforces, calculated from the objects alone. */
export function modelOfNode(node: string, objects: readonly KubeObject[]): ModelCopy {
  const calculator = createCalculator(node, vendorNames);
  for (const object of objects) calculator.set(object);
  calculator.inSync();
  const model = new ModelCopy();
  model.apply(calculator.takeDelta()!);
  return model;
}
