import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { type KubeObject, parseGroupVersion } from "../../src/api/object.ts";
import { type Calculator, createCalculator } from "../../src/calc/calculator.ts";
import type { ModelDelta, Rule, TierPolicies } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { Random } from "./random.ts";
import { randomCluster } from "./random-cluster.ts";
import { routingObjects } from "./random-routing.ts";
import { serviceObjects } from "./random-services.ts";

const seeds = fc.integer({ min: 1, max: 1_000_000 });

function objectsOf(seed: number): KubeObject[] {
  const objects = [
    ...randomCluster(seed).objects,
    ...routingObjects(new Random(seed)),
    ...serviceObjects(new Random(seed)),
  ];
  return [...new Map(objects.map((object) => [idOf(object), object])).values()];
}

function idOf({ apiVersion, kind, metadata }: KubeObject): string {
  return `${parseGroupVersion(apiVersion).group}/${kind} ${metadata.namespace ?? ""}/${metadata.name}`;
}

function drop(calculator: Calculator, { apiVersion, kind, metadata }: KubeObject): void {
  calculator.remove({ group: parseGroupVersion(apiVersion).group, kind }, metadata);
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const rest = [...items];
  return items.map(() => rest.splice(random.below(rest.length), 1)[0]!);
}

/** The whole model as text, so that a difference shows. */
function textOf(model: ModelCopy): unknown {
  const { settings, ...tables } = model;
  const sorted = Object.entries(tables).flatMap(([name, table]) =>
    table instanceof Map ? [[name, [...table].sort(([a], [b]) => (a < b ? -1 : 1))]] : [],
  );
  return { settings, ...Object.fromEntries(sorted) };
}

function modelOf(objects: readonly KubeObject[]): unknown {
  const calculator = createCalculator("node-a", vendorNames);
  for (const object of objects) calculator.set(object);
  const model = new ModelCopy();
  model.apply(calculator.takeDelta()!);
  return textOf(model);
}

function rulesOf(model: ModelCopy): Rule[] {
  return [...model.policies.values(), ...model.profiles.values()].flatMap(({ ingress, egress }) => [
    ...ingress,
    ...egress,
  ]);
}

function tiersOf(model: ModelCopy): TierPolicies[] {
  const workloads = [...model.endpoints.values()].flatMap(({ ingress, egress }) => [...ingress.tiers, ...egress.tiers]);
  const hosts = [...model.hostEndpoints.values()].flatMap(({ preDNAT, forward, normal }) => [
    ...preDNAT,
    ...[forward, normal].flatMap(({ ingress, egress }) => [...ingress, ...egress]),
  ]);
  return [...workloads, ...hosts];
}

/** What is referred to is there, and what is there is referred to. */
function expectWhole(model: ModelCopy): void {
  const setsIn = (fields: RegExp) => {
    const all = rulesOf(model).flatMap((rule) => Object.entries(rule).filter(([field]) => fields.test(field)));
    return [...new Set(all.flatMap(([, ids]) => ids as string[]))].sort();
  };
  expect(setsIn(/(?<!Account)Sets$/)).toEqual([...model.ipSets.keys()].sort());
  expect(setsIn(/AccountSets$/)).toEqual([...model.accountSets.keys()].sort());
  const policies = tiersOf(model).flatMap((tier) => tier.policies);
  expect([...new Set(policies)].sort()).toEqual([...model.policies.keys()].sort());
  const profiles = [
    ...[...model.endpoints.values()].flatMap(({ ingress, egress }) => [...ingress.profiles, ...egress.profiles]),
    ...[...model.hostEndpoints.values()].flatMap((endpoint) => endpoint.profiles),
  ];
  expect([...new Set(profiles)].sort()).toEqual([...model.profiles.keys()].sort());
}

/** Nothing is told twice, nothing is removed that was not there, nothing is set to what it was. */
function expectMinimal(model: ModelCopy, delta: ModelDelta): void {
  const tables = [
    "endpoints",
    "hostEndpoints",
    "policies",
    "profiles",
    "routes",
    "nodes",
    "services",
    "problems",
  ] as const;
  for (const name of tables) {
    const table: ReadonlyMap<string, unknown> = model[name];
    for (const id of delta[name].remove) expect([name, id, table.has(id)]).toEqual([name, id, true]);
    const had = new Set([...table.values()].map((value) => JSON.stringify(value)));
    for (const value of delta[name].set) expect(had.has(JSON.stringify(value))).toBe(false);
  }
  for (const { id, add, remove } of delta.ipSets.change) {
    const members = new Set(model.ipSets.get(id)!.members);
    expect(add.length + remove.length).toBeGreaterThan(0);
    expect(add.filter((member) => members.has(member))).toEqual([]);
    expect(remove.filter((member) => !members.has(member))).toEqual([]);
  }
}

describe("the calculation has no memory", () => {
  it("the same objects in any order give the same model", () => {
    fc.assert(
      fc.property(seeds, seeds, (seed, order) => {
        const objects = objectsOf(seed);
        expect(modelOf(shuffled(objects, new Random(order)))).toEqual(modelOf(objects));
      }),
      { numRuns: 150 },
    );
  });

  it("one world turned into another, object by object with looks in between, ends as if it had always been so", () => {
    fc.assert(
      fc.property(seeds, seeds, seeds, (first, second, order) => {
        const random = new Random(order);
        const calculator = createCalculator("node-a", vendorNames);
        const model = new ModelCopy();
        const look = () => {
          const delta = calculator.takeDelta();
          if (!delta) return;
          expectMinimal(model, delta);
          model.apply(delta);
          expectWhole(model);
        };
        const [before, after] = [objectsOf(first), objectsOf(second)];
        const stays = new Set(after.map(idOf));
        const steps = [
          ...shuffled(before, random).map((object) => () => calculator.set(object)),
          ...shuffled(
            [
              ...after.map((object) => () => calculator.set(object)),
              ...before.filter((object) => !stays.has(idOf(object))).map((object) => () => drop(calculator, object)),
            ],
            random,
          ),
        ];
        for (const step of steps) {
          step();
          if (random.chance(20)) look();
        }
        look();
        expect(textOf(model)).toEqual(modelOf(after));
        expect(calculator.takeDelta()).toBeUndefined();
      }),
      { numRuns: 120 },
    );
  });

  it("what is set again as it was, is no change", () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const calculator = createCalculator("node-a", vendorNames);
        for (const object of objectsOf(seed)) calculator.set(object);
        calculator.takeDelta();
        for (const object of objectsOf(seed)) calculator.set(structuredClone(object));
        expect(calculator.takeDelta()).toBeUndefined();
      }),
      { numRuns: 60 },
    );
  });

  it("a delta survives being written as JSON", () => {
    const calculator = createCalculator("node-a", vendorNames);
    for (const object of objectsOf(7)) calculator.set(object);
    const delta = calculator.takeDelta()!;
    expect(JSON.parse(JSON.stringify(delta))).toEqual(delta);
  });
});
