import { relative } from "node:path";
import { BaseSequencer } from "vitest/node";
import { secondsOf } from "./durations.mjs";
import { PROJECTS } from "./projects.mjs";
import { randomFrom } from "./random.mjs";

/** From here on a file that starts last would leave the other workers idle at the end of a run. */
const SLOW_SECONDS = 5;

/** Recorded seconds are multiplied by 1 ± this, so that slow files meet different neighbours in each run. */
const JITTER = 0.25;

/**
 * Files of a project in random order, so that none comes to depend on the one before it, except that slow files start
 * first, the slowest ahead, so that all workers end together. A seed repeats the order.
 * @param {string[]} paths
 * @param {number} seed
 * @param {(path: string) => number} seconds
 */
export function orderFiles(paths, seed, seconds) {
  const random = randomFrom(seed);
  // Drawn in the order of names: the order that vitest finds files in must not change what a seed means.
  const drawn = [...paths].sort().map((path) => ({ path, draw: random(), seconds: seconds(path) }));
  const slow = drawn.filter((file) => file.seconds >= SLOW_SECONDS);
  const others = drawn.filter((file) => file.seconds < SLOW_SECONDS);
  const weight = (file) => file.seconds * (1 + JITTER * (2 * file.draw - 1));
  slow.sort((a, b) => weight(b) - weight(a));
  others.sort((a, b) => a.draw - b.draw);
  return [...slow, ...others].map(({ path }) => path);
}

export class SlowFilesFirst extends BaseSequencer {
  /** @param {import("vitest/node").TestSpecification[]} files */
  async sort(files) {
    const { root, sequence } = this.ctx.config;
    const ordered = (some) => {
      const byPath = new Map(some.map((file) => [relative(root, file.moduleId), file]));
      return orderFiles([...byPath.keys()], sequence.seed, secondsOf).map((path) => byPath.get(path));
    };
    // One project after the other, unit last: files share a process only with the next ones of their project, and short files fill the gaps.
    const place = (name) => PROJECTS.findIndex((project) => project.name === name);
    const names = [...new Set(files.map(({ project }) => project.name))].sort((a, b) => place(b) - place(a));
    return names.flatMap((name) => ordered(files.filter(({ project }) => project.name === name)));
  }
}
