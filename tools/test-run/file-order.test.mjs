import { expect, it } from "vitest";
import { orderFiles, SlowFilesFirst } from "./file-order.mjs";

const quick = Array.from({ length: 30 }, (_, index) => `quick-${index}`);
const SLOW = { long: 120, middling: 40, short: 6 };
const paths = [...quick.slice(0, 15), ...Object.keys(SLOW), ...quick.slice(15)];
const seconds = (path) => SLOW[path] ?? 0.5;

it("slow files start first, the slowest ahead", () => {
  for (let seed = 0; seed < 50; seed++) {
    expect(orderFiles(paths, seed, seconds).slice(0, 3)).toEqual(["long", "middling", "short"]);
  }
});

it("the others are in random order, and every file is there once", () => {
  const [one, other] = [orderFiles(paths, 1, seconds), orderFiles(paths, 2, seconds)];
  expect(one).not.toEqual(other);
  expect([...one].sort()).toEqual([...paths].sort());
});

it("a seed repeats the order, in whatever order files were found", () => {
  expect(orderFiles([...paths].reverse(), 7, seconds)).toEqual(orderFiles(paths, 7, seconds));
});

it("slow files of about the same length change places from run to run", () => {
  const alike = { a: 30, b: 33 };
  const firsts = new Set(
    Array.from({ length: 50 }, (_, seed) => orderFiles(["a", "b"], seed, (path) => alike[path])[0]),
  );
  expect(firsts).toEqual(new Set(["a", "b"]));
});

it("one project follows the other, so that files share a process with those before them, unit last", async () => {
  const sequencer = new SlowFilesFirst({ config: { root: "/project", sequence: { seed: 3 } } });
  const file = (path, name) => ({ moduleId: `/project/${path}`, project: { name } });
  const files = [file("a", "unit"), file("b", "root"), file("c", "unit"), file("d", "cluster"), file("e", "root")];
  const order = (await sequencer.sort(files)).map(({ project }) => project.name);
  expect(order).toEqual(["root", "root", "cluster", "unit", "unit"]);
});
