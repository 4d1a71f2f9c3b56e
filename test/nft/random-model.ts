import { vendorNames } from "../../src/api/names.ts";
import { createCalculator } from "../../src/policy/calculator.ts";
import { ModelCopy } from "../../src/policy/model-copy.ts";
import type { RandomWorld } from "../policy/random-world.ts";

export function modelOf(world: RandomWorld): ModelCopy {
  const calculator = createCalculator(world.node, vendorNames);
  for (const object of world.objects) calculator.set(object);
  const model = new ModelCopy();
  model.apply(calculator.take()!);
  return model;
}
