import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { birdConfiguration } from "../../src/agent/bgp/bird-configuration.ts";
import { askBird, bgpPlaces } from "../../src/agent/bgp/bird-control.ts";
import { birdConfig } from "../../src/calc/bgp/bird-config.ts";
import { calculateBgp } from "../../src/calc/bgp/calculate-bgp.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { meaningOf, randomBgp } from "./bgp-worlds.ts";
import { whyNoBird } from "./frr-router.ts";
import { until, whyNoNodes } from "./node-lab.ts";

const why = whyNoNodes() ?? whyNoBird();
const WORLDS = Number(process.env["BGP_WORLDS"] ?? 200);
const SEED = Number(process.env["BGP_SEED"] ?? 20_261);

/** Each world is a configuration of one node. The daemon takes it while it runs, and is asked what each session announces. */
describe.skipIf(why !== undefined)(`random BGP configurations${why ? ` (${why})` : ""}`, () => {
  const directory = mkdtempSync(join(tmpdir(), "bgp-"));
  const places = bgpPlaces(directory);
  const configuration = birdConfiguration(places);
  const kernel = realKernel();
  let netns: Netns;
  let bird: ChildProcess;

  beforeAll(async () => {
    netns = kernel.netns.create(`bgp-${process.pid}`);
    await configuration.settle(textOf(1));
    const command = ["bird", "-f", "-c", places.configuration, "-s", places.control];
    bird = spawn("nsenter", [`--net=/run/netns/${netns.name}`, ...command], { stdio: "ignore" });
    await until(
      () => existsSync(places.control),
      () => "BIRD does not start",
    );
  });
  afterAll(() => {
    bird?.kill("SIGKILL");
    netns?.close();
    if (netns) kernel.netns.delete(netns.name);
    rmSync(directory, { recursive: true, force: true });
  });

  it(`BIRD accepts ${WORLDS} of them, and announces in each session what the objects mean (BGP_SEED=${SEED})`, async () => {
    let announced = 0;
    for (let at = 0; at < WORLDS; at++) {
      const world = randomBgp(SEED + at);
      const { model } = calculateBgp(world);
      expect(await configuration.settle(birdConfig(model!)), `world ${SEED + at}`).toEqual({ is: "active" });
      const meant = meaningOf(world);
      expect(model!.sessions.map(({ name }) => name).sort(), `world ${SEED + at}`).toEqual([...meant.keys()].sort());
      for (const [session, routes] of meant) {
        const said = await announcedIn(session);
        expect(said, `world ${SEED + at}, ${session}`).toEqual(routes);
        announced += said.length;
      }
    }
    expect(announced).toBeGreaterThan(WORLDS);
  });

  const announcedIn = async (session: string): Promise<string[]> => {
    const family = /_[0-9]+_[0-9]+_[0-9]+_[0-9]+/.test(session) ? 4 : 6;
    const lines = await askBird(places.control, `show route table master${family} filter export_${session} all`);
    const routes: string[] = [];
    for (const { text } of lines) {
      const [, net] = /^([0-9a-f.:]+\/\d+)\s/.exec(text) ?? [];
      const [, communities] = /BGP\.(?:large_)?community: (.*)$/.exec(text) ?? [];
      if (net !== undefined) routes.push(net);
      else if (communities !== undefined) {
        const values = communities.match(/\([^)]*\)/g) ?? [];
        routes.push(
          `${routes.pop()} ${values.map((value) => value.replace(/[() ]/g, "").replaceAll(",", ":")).join(" ")}`,
        );
      }
    }
    return routes
      .map((route) => route.split(" "))
      .map(([net, ...values]) => [net, ...values.sort()].join(" "))
      .sort();
  };
});

function textOf(seed: number): string {
  return birdConfig(calculateBgp(randomBgp(seed)).model!);
}
