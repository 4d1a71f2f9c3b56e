import { expect, it } from "vitest";
import { NAMESPACES, SERVICE_ACCOUNTS } from "../../src/cluster/kinds.ts";
import { CONFIGURATIONS, typeOf } from "../../src/controllers/stored-kinds.ts";
import { fakeClock } from "../../src/kit/fake-clock.ts";
import { addNode, controllersLab, eventually } from "./controllers-lab.ts";

/** A thousand nodes and two thousand namespaces: one write for each thing to be made, and not one more afterwards. */
const NODES = 1_000;
const SPACES = 2_000;
/** Beside the two every world has. */
const ALL_SPACES = SPACES + 2;

it("a large cluster settles with one write per object, and a settled one with none", async () => {
  const world = await controllersLab();
  const { client } = world;
  for (let i = 0; i < NODES; i++) await addNode(client, `node-${i}`, { labels: { index: `${i}` } });
  for (let i = 0; i < SPACES; i++) {
    const name = `space-${i}`;
    await client.create(NAMESPACES, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, labels: { index: `${i}` } },
    });
    await client.create(SERVICE_ACCOUNTS, {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "default", namespace: name },
    });
  }
  const spec = { controllers: { node: { hostEndpoint: { autoCreate: "Enabled" } } } };
  await client.create(CONFIGURATIONS, { ...typeOf(CONFIGURATIONS), metadata: { name: "default" }, spec });

  const began = Date.now();
  const clock = fakeClock(began);
  const first = world.start({ clock });
  const profiles = ALL_SPACES + SPACES + 1;
  const expected = NODES + profiles + 1;
  await eventually(
    // Endpoints wait for the profile they need on the story's own clock.
    async () => {
      await clock.advance(500);
      return first.writes.length;
    },
    (count) => count >= expected,
    120_000,
  );
  const settledMs = Date.now() - began;
  expect((await world.endpoints()).length).toBe(NODES);
  expect((await world.profiles()).length).toBe(profiles);
  await clock.advance(3_600_000);
  const creates = first.writes.filter((write) => write.startsWith("POST"));
  expect(creates.length).toBe(NODES + profiles);
  expect(first.writes.length).toBe(expected);
  await first.stop();

  const second = world.start({ clock });
  await eventually(
    second.metrics,
    (text) =>
      text.includes(`controller="profiles",result="ok"} ${profiles}`) &&
      text.includes(`controller="host-endpoints",result="ok"} ${NODES}`),
    120_000,
  );
  expect(second.writes).toEqual([]);
  console.log(
    `controllers at scale: ${JSON.stringify({ nodes: NODES, namespaces: SPACES, writes: expected, settledMs })}`,
  );
  await world.close();
});
