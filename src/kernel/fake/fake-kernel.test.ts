import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { kernelContract } from "../testing/contract.ts";
import { fakeKernel } from "./fake-kernel.ts";

kernelContract(
  "fake",
  () => fakeKernel(),
  () => undefined,
);

it("the fake says that it cannot run programs, unless it is told what they give", () => {
  const instructions = Buffer.from("b700000000000000" + "9500000000000000", "hex");
  const spec = { name: "zero", type: "schedCls", instructions } as const;
  const packet = Buffer.alloc(14);
  expect(() => fakeKernel().bpf.loadProgram(spec).testRun({ packet })).toThrow(
    expect.objectContaining({ code: "KERNEL_NOT_SUPPORTED" }),
  );
  const answer = { verdict: 2, packet, context: undefined, nanoseconds: 1 };
  expect(
    fakeKernel({ runProgram: () => answer })
      .bpf.loadProgram(spec)
      .testRun({ packet }),
  ).toBe(answer);
});

it("the fake without the newer hook says so when asked for features", async () => {
  expect((await fakeKernel({ tcx: false }).features()).tcx).toBe(false);
  expect((await fakeKernel().features()).tcx).toBe(true);
});

it("the fake never loads anything native", () => {
  fakeKernel().bpf.createMap({ name: "map", type: "array", keySize: 4, valueSize: 4, maxEntries: 1 });
  const { cache } = createRequire(import.meta.url);
  expect(Object.keys(cache).filter((path) => path.includes("koffi"))).toEqual([]);
});
