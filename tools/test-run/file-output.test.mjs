import { expect, it } from "vitest";
import { FileOutput } from "./file-output.mjs";

it("keeps what each file prints, in whole lines, until it is taken", () => {
  const output = new FileOutput();
  const [a, b] = [{ files: ["a.test.ts"] }, { files: ["b.test.ts"] }];
  const [ofA, ofB] = [output.streamOf(a), output.streamOf(b)];
  ofA.write("one ");
  ofB.write("other\n");
  ofA.write("line\n");
  expect(output.takeText("a.test.ts")).toBe("one line\n");
  expect(output.takeText("a.test.ts")).toBe("");
  expect(output.takeText("b.test.ts")).toBe("other\n");
});

it("reports warnings of child processes, but neither the worker's own nor foreign ones", () => {
  const warnings = [];
  const output = new FileOutput({ onWarning: (...warning) => warnings.push(warning) });
  const stream = output.streamOf({ files: ["a.test.ts"], pid: 7 });
  stream.write("(node:7) MaxListenersExceededWarning: known in the worker\n");
  stream.write("(node:8) ExperimentalWarning: a feature\n(node:8) [DEP0040] DeprecationWarning: punycode\n");
  stream.write("(node:8) MaxListenersExceededWarning: 11 listeners\n");
  expect(warnings).toEqual([["a.test.ts", "MaxListenersExceededWarning: 11 listeners"]]);
});

it("keeps the end of what is too much to keep", () => {
  const output = new FileOutput();
  const stream = output.streamOf({ files: ["a.test.ts"] });
  for (let index = 0; index < 5_000; index++) stream.write(`${index} ${"x".repeat(90)}\n`);
  const text = output.takeText("a.test.ts");
  expect(text.length).toBeLessThanOrEqual(200_000);
  expect(text).toContain("\n4999 x");
});

it("what a worker with several files prints belongs to the one it began last", () => {
  const output = new FileOutput();
  const stream = output.streamOf({ files: ["a.test.ts", "b.test.ts", "c.test.ts"] });
  for (const file of ["b.test.ts", "other.test.ts", "a.test.ts"]) {
    output.start(file);
    stream.write(`while ${file}\n`);
  }
  expect(output.takeText("a.test.ts")).toBe("while a.test.ts\n");
  expect(output.takeText("b.test.ts")).toBe("while b.test.ts\nwhile other.test.ts\n");
});
