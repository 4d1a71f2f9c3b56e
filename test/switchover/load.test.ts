import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LabNode, until, whyNoNodes } from "../agent/node-lab.ts";
import { anotherRelease, type Release } from "../support/another-release.ts";
import { allEnded, answeredMore, type LoadLab, loadLab, programsOf } from "./load-lab.ts";

const why = whyNoNodes();
const FULL = process.env["SERVICE_LOAD"] === "full";
const LONG = FULL ? "" : " (a long run: npm run test:long -- load)";
const PER_SECOND = FULL ? 2_000 : 200;
const KILLS = FULL ? 3 : 1;
const SCALED = FULL ? 3 : 1;
/** On every way, before and after whatever happens. */
const SETTLED = FULL ? 1_000 : 50;
/** How long after a backend was said to end nobody begins anything with it. */
const PROMISED_MS = 1_000;

/** The same structures, and programs that differ by a number. */
const OTHER_PROGRAMS = [{ file: "lib/conntrack.h", from: "(SECOND / 8)", to: "(SECOND / 16)" }];
/** A flow has one thing more to remember: no map of the release before can be gone on with. */
const OTHER_LAYOUT = [
  {
    file: "lib/types.h",
    from: "\t__u16 pad2;\n};\n\n/*\n * Who answers",
    to: "\t__u16 pad2;\n\t__u64 later;\n};\n\n/*\n * Who answers",
  },
];

/** New connections all the time, through node ports and cluster addresses, to backends of this node and of another. */
describe.skipIf(why !== undefined)(`services under load${why ? ` (${why})` : ""}`, () => {
  let lab: LoadLab;
  let releases: { layout: Release; programs: Release } | undefined;
  beforeAll(async () => {
    if (FULL) releases = { layout: await anotherRelease(OTHER_LAYOUT), programs: await anotherRelease(OTHER_PROGRAMS) };
    lab = await loadLab(PER_SECOND);
  });
  afterAll(async () => {
    await lab?.close();
    for (const one of Object.values(releases ?? {})) one.remove();
  });

  /** No connection is lost on any way while it happens. */
  const losesNothing = async (what: string, happen: () => Promise<void>) => {
    lab.reconnect();
    await answeredMore(lab, SETTLED);
    await happen();
    await answeredMore(lab, SETTLED);
    await allEnded(lab);
    const { rows, perSecond, why: reasons } = await lab.report();
    process.stdout.write(`${what}: ${perSecond} new connections a second\n`);
    for (const [name, row] of Object.entries(rows)) process.stdout.write(`  ${name}: ${JSON.stringify(row)}\n`);
    expect(reasons).toEqual([]);
  };
  const eachNode = (act: (node: LabNode) => Promise<void>) => async () => {
    for (const node of lab.nodes) await act(node);
  };

  it("an agent that is killed, and starts again, loses no connection", async () => {
    const times = Array.from({ length: KILLS });
    const killed = eachNode(async (node) => {
      for (const _ of times) {
        await node.kill();
        await node.start();
      }
    });
    await losesNothing(`killed ${KILLS} times on each node`, killed);
  });

  it.runIf(FULL)(`an agent that is told to end, and starts again, loses no connection${LONG}`, async () => {
    const stopped = eachNode(async (node) => {
      await node.stop();
      await node.start();
    });
    await losesNothing("ended and started on each node", stopped);
  });

  it.runIf(FULL)(`an upgrade to other programs, and back, loses no connection${LONG}`, async () => {
    const before = await programsOf(lab.nodes[0]!);
    await losesNothing("other programs on each node", eachNode(upgraded(releases?.programs)));
    const now = await programsOf(lab.nodes[0]!);
    expect(now.tags).not.toBe(before.tags);
    expect(now.layouts).toEqual(before.layouts);
    await losesNothing("the programs before on each node", eachNode(upgraded()));
    expect(await programsOf(lab.nodes[0]!)).toEqual(before);
  });

  it.runIf(FULL)(`an upgrade that changes the layout of the maps, and back, loses no connection${LONG}`, async () => {
    const before = await programsOf(lab.nodes[0]!);
    await losesNothing("maps of another layout on each node", eachNode(upgraded(releases?.layout)));
    const now = await programsOf(lab.nodes[0]!);
    expect(now.layouts).toHaveLength(1);
    expect(now.layouts).not.toEqual(before.layouts);
    await losesNothing("maps of the layout before on each node", eachNode(upgraded()));
    expect(await programsOf(lab.nodes[0]!)).toEqual(before);
  });

  it.runIf(FULL)(`such an upgrade that is killed on the way, and goes on, loses no connection${LONG}`, async () => {
    const killedOnce = eachNode(upgradedAtLast(releases!.layout));
    await losesNothing("killed on the way to another layout on each node", killedOnce);
    await losesNothing("and back on each node", eachNode(upgraded()));
  });

  it("backends that come and go lose no connection: one that ends gets no new ones, and ends those it has", async () => {
    await losesNothing(
      `${SCALED} backends came and went on each node`,
      eachNode(async (node) => {
        for (let round = 0; round < SCALED; round++) await comesAndGoes(`more-${node.name}-${round}`, node);
      }),
    );
  });

  const upgraded = (release?: Release) => async (node: LabNode) => {
    await node.stop();
    await node.start(release?.directory);
  };

  /** The first agent of the new release is killed while both layouts are there. */
  const upgradedAtLast = (release: Release) => async (node: LabNode) => {
    await node.stop();
    const starting = node.start(release.directory).catch(() => undefined);
    const isOnTheWay = async () => (await programsOf(node)).layouts.length > 1;
    await until(isOnTheWay, () => node.log());
    await node.kill();
    await starting;
    await node.start(release.directory);
  };

  const comesAndGoes = async (name: string, node: LabNode) => {
    const backend = await lab.scaleUp(name, node);
    await until(
      async () => (await backend.report()).accepted > 10,
      () => `${name} is not asked`,
    );
    const held = await lab.hold(20);
    const own = async () => (await held.report()).filter(({ server }) => server === name);
    const saidAt = Date.now();
    await lab.terminate(backend);
    if (FULL) await promised();
    else await nobodyBeginsAt(backend);
    backend.refuse();
    const before = (await own()).map(({ answers }) => answers);
    await until(
      async () => (await own()).every(({ answers }, at) => answers > before[at]! + 2),
      () => "those it had are not answered",
    );
    held.end();
    await until(
      async () => (await held.report()).every(({ isEnded }) => isEnded),
      () => "those it had do not end",
    );
    expect((await held.report()).map(({ lost }) => lost).filter(Boolean)).toEqual([]);
    const { lastBegun } = await backend.report();
    process.stdout.write(`${name}: the last connection was begun ${lastBegun - saidAt} ms after it was said to end\n`);
    // As a server that is told to end: it goes when it has answered everybody it has.
    await allEnded(lab);
    await lab.remove(backend);
  };

  /** What the guide says, to the letter: on a machine that does much else beside, an agent may hear of the change later than that. */
  const promised = () => new Promise((resolve) => setTimeout(resolve, PROMISED_MS));

  const nobodyBeginsAt = async (backend: { report(): Promise<{ accepted: number }> }) => {
    let before = -1;
    await until(
      async () => {
        const { accepted } = await backend.report();
        const isQuiet = accepted === before;
        before = accepted;
        await answeredMore(lab, 20);
        return isQuiet;
      },
      () => "it still gets new connections",
    );
  };
});
