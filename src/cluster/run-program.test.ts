import { describe, expect, it } from "vitest";
import { CodedError } from "../kit/errors.ts";
import { type Log, openLog } from "../kit/log.ts";
import type { Program, ProgramContext } from "./program.ts";
import { logLevelOf, runProgram } from "./run-program.ts";

async function run(program: Program, stop = new AbortController()) {
  const lines: Record<string, unknown>[] = [];
  const log: Log = await openLog({ level: "info", format: "json", write: (line) => lines.push(JSON.parse(line)) });
  const nowhere = () => {
    throw new Error("no such thing in this story");
  };
  const world: ProgramContext = { env: {}, signal: stop.signal, log, transport: nowhere, listen: nowhere };
  return { exitCode: await runProgram(program, world), lines };
}

describe("the end of a program", () => {
  it("is 0 when it was asked to stop and did", async () => {
    const stop = new AbortController();
    stop.abort();
    expect(await run(async () => {}, stop)).toMatchObject({ exitCode: 0, lines: [{ message: "stopped, as asked" }] });
  });

  it("is 0 as well when the stop cut short what it waited for", async () => {
    const stop = new AbortController();
    stop.abort();
    const { exitCode } = await run(async ({ signal }) => signal.throwIfAborted(), stop);
    expect(exitCode).toBe(0);
  });

  it("has the code of its error, and says what to do, without a stack", async () => {
    const { exitCode, lines } = await run(async () => {
      throw new CodedError("PORT_IN_USE", "port 5443 is in use", { exitCode: 69, fix: "choose another" });
    });
    expect(exitCode).toBe(69);
    expect(lines).toEqual([
      {
        level: "error",
        time: expect.any(String),
        code: "PORT_IN_USE",
        fix: "choose another",
        message: "port 5443 is in use",
      },
    ]);
  });

  it("is 1 for what nobody foresaw, with all there is to find it by", async () => {
    const { exitCode, lines } = await run(async () => {
      throw new TypeError("x is not a function");
    });
    expect(exitCode).toBe(1);
    expect(lines[0]).toMatchObject({ code: "INTERNAL", error: { type: "TypeError", stack: expect.any(String) } });
  });
});

describe("how much a program says", () => {
  it.each([
    [undefined, "info"],
    ["debug", "debug"],
    ["WARN", "warn"],
    ["nonsense", "info"],
  ])("LOG_LEVEL=%s is %s", (given, level) => expect(logLevelOf({ LOG_LEVEL: given })).toBe(level));
});
