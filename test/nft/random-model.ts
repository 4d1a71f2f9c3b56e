import { vendorNames } from "../../src/api/names.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import type { RandomCluster } from "../calc/random-cluster.ts";

export function modelOf(world: RandomCluster): ModelCopy {
  const calculator = createCalculator(world.node, vendorNames);
  for (const object of world.objects) calculator.set(object);
  const model = new ModelCopy();
  model.apply(calculator.takeDelta()!);
  return model;
}
