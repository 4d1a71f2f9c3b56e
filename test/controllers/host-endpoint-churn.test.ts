import { isDeepStrictEqual } from "node:util";
import { expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import type { HostEndpoint } from "../../src/api/resources/host-endpoint.ts";
import { NODES } from "../../src/cluster/kinds.ts";
import { CONFIGURATIONS, HOST_ENDPOINTS, isOurs, typeOf } from "../../src/controllers/stored-kinds.ts";
import { addNode, type ControllersLab, controllersLab, eventually } from "./controllers-lab.ts";
import { faultInjector, randomFrom } from "./fault-injector.ts";

/**
 * Five hundred nodes come, change and go in random order, while the API fails at random and the program is killed again and again.
 * At the end there is one endpoint for each node that is left, as the node is, and what people made is untouched to the last version.
 */
const NODE_COUNT = 500;
const STEPS = 2_000;
const KILLS = 8;
/** Nodes whose endpoint's name a person has taken. */
const TAKEN = 20;
const CREATED_BY = { "vendor.io/created-by": "vendor-kube-controllers" };

type Endpoint = KubeObject & HostEndpoint;
type Labels = Record<string, string>;

it("loses no host endpoint and touches no foreign one under churn, faults and kills", async () => {
  const seed = Number(process.env["CHURN_SEED"] ?? Date.now() % 2 ** 31);
  const random = randomFrom(seed);
  const world = await controllersLab();
  const faults = faultInjector(random);
  await makeForeign(world);
  const foreignBefore = await foreign(world);
  const programs = [world.start({ fault: faults.forProgram(0) })];
  await turnOn(world);

  const nodes = new Map<string, Labels>();
  const done = { added: 0, relabelled: 0, deleted: 0, edited: 0, killed: 0 };
  for (let step = 0; step < STEPS; step++) {
    done[await changeANode(world, nodes, step, random)]++;
    if (random() < 0.05 && (await editByHand(world, random))) done.edited++;
    if (step >= ((done.killed + 1) * STEPS) / (KILLS + 1)) {
      faults.kill(done.killed++);
      programs.push(world.start({ fault: faults.forProgram(done.killed) }));
    }
  }

  faults.end();
  const wanted = wantedFor(nodes);
  const found = await eventually(
    async () => (await world.endpoints()).filter(isOurs) as Endpoint[],
    (all) => isDeepStrictEqual(shown(all), wanted),
    120_000,
  );
  expect(await foreign(world)).toEqual(foreignBefore);
  const writes = programs.reduce((sum, program) => sum + program.writes.length, 0);
  const counted = { seed, ...done, faults: faults.count(), endpoints: found.length, foreign: TAKEN * 2, writes };
  console.log(`host endpoints under churn: ${JSON.stringify(counted)}`);
  expect(faults.count()).toBeGreaterThan(50);
  expect(done.killed).toBe(KILLS);
  await world.close();
});

const nameOf = (index: number) => `node-${String(index).padStart(3, "0")}`;

async function turnOn({ client }: ControllersLab): Promise<void> {
  await eventually(
    () => client.list(CONFIGURATIONS),
    ({ items }) => items.length === 1,
  );
  const patch = { spec: { controllers: { node: { hostEndpoint: { autoCreate: "Enabled" } } } } };
  await client.patch(CONFIGURATIONS, { name: "default" }, { type: "merge", patch });
}

async function changeANode(
  { client }: ControllersLab,
  nodes: Map<string, Labels>,
  step: number,
  random: () => number,
): Promise<"added" | "relabelled" | "deleted"> {
  const name = nameOf(Math.floor(random() * NODE_COUNT));
  const labels = nodes.get(name);
  const zone = "abc"[Math.floor(random() * 3)] as string;
  if (!labels) {
    nodes.set(name, { zone, born: `${step}` });
    await addNode(client, name, { labels: { zone, born: `${step}` } });
    return "added";
  }
  if (random() < 0.3) {
    nodes.delete(name);
    await client.delete(NODES, { name });
    return "deleted";
  }
  // A label more or a label less: both must arrive.
  const changed: Labels = random() < 0.5 ? { zone, step: `${step}` } : { born: `${step}` };
  const gone = Object.fromEntries(Object.keys(labels).map((key) => [key, null]));
  nodes.set(name, changed);
  const patch = { metadata: { labels: { ...gone, ...changed } } };
  await client.patch(NODES, { name }, { type: "merge", patch });
  return "relabelled";
}

/** A person changes or deletes some automatic endpoint; whether there was one. */
async function editByHand({ client, endpoints }: ControllersLab, random: () => number): Promise<boolean> {
  const all = (await endpoints()).filter(isOurs);
  const one = all[Math.floor(random() * all.length)];
  if (!one) return false;
  const { name } = one.metadata;
  const other = all[Math.floor(random() * all.length)] as Endpoint;
  const patch = { metadata: { labels: { edited: "yes" } }, spec: { node: other.spec.node, expectedIPs: [] } };
  const edit =
    random() < 0.5
      ? client.patch(HOST_ENDPOINTS, { name }, { type: "merge", patch })
      : client.delete(HOST_ENDPOINTS, { name });
  return await Promise.resolve(edit).then(
    () => true,
    () => false,
  );
}

async function makeForeign({ client }: ControllersLab): Promise<void> {
  for (let i = 0; i < TAKEN; i++) {
    for (const name of [`${nameOf(i)}-auto-hep`, `own-${i}`]) {
      const spec = { node: nameOf(i), interfaceName: "eth1", expectedIPs: [`192.0.2.${i}`] };
      await client.create(HOST_ENDPOINTS, {
        ...typeOf(HOST_ENDPOINTS),
        metadata: { name, labels: { mine: `${i}` } },
        spec,
      });
    }
  }
}

async function foreign({ endpoints }: ControllersLab): Promise<KubeObject[]> {
  return (await endpoints()).filter((endpoint) => !isOurs(endpoint));
}

function wantedFor(nodes: ReadonlyMap<string, Labels>): unknown[] {
  const taken = new Set(Array.from({ length: TAKEN }, (_, i) => nameOf(i)));
  return [...nodes]
    .filter(([name]) => !taken.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, labels]) => [`${name}-auto-hep`, name, { ...labels, ...CREATED_BY }, ["10.0.0.1"]]);
}

function shown(all: readonly Endpoint[]): unknown[] {
  return [...all]
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map(({ metadata, spec }) => [metadata.name, spec.node, metadata.labels, spec.expectedIPs]);
}
