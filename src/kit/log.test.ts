import { describe, expect, it } from "vitest";
import { type LogOptions, openLog, silentLog } from "./log.ts";

async function logTo(options: Partial<LogOptions>) {
  const lines: string[] = [];
  const log = await openLog({ level: "info", format: "json", write: (line) => lines.push(line), ...options });
  return { log, lines };
}

describe("a log", () => {
  it("writes one JSON line per event: time, level, fields and message", async () => {
    const { log, lines } = await logTo({});
    log.child({ node: "node-1" }).info({ pods: 3 }, "pods are ready");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toEqual({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      node: "node-1",
      pods: 3,
      message: "pods are ready",
    });
  });

  it("as text for people never holds what controls a terminal, or another line", async () => {
    const { log, lines } = await logTo({ format: "text" });
    log.info({ pod: "a\x1b[2J", why: "x\u202ey" }, "pod \x9b31m\nforged");
    expect(lines[0]).toMatch(/pod \\u009b31m\\u000aforged pod=a\\u001b\[2J why=x\\u202ey\n$/);
  });

  it("keeps quiet below its level", async () => {
    const { log, lines } = await logTo({ level: "warn" });
    log.debug({}, "a");
    log.info({}, "b");
    log.warn({}, "c");
    log.error({}, "d");
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(["c", "d"]);
  });

  it("keeps an error's message and stack", async () => {
    const { log, lines } = await logTo({});
    log.error({ error: new Error("disk is full") }, "could not save");
    expect(JSON.parse(lines[0]!).error).toMatchObject({
      type: "Error",
      message: "disk is full",
      stack: expect.any(String),
    });
  });

  it("reads as a sentence for a person", async () => {
    const { log, lines } = await logTo({ format: "text" });
    log.warn({ port: 6443, reason: "two words", error: new Error("in use") }, "cannot listen");
    expect(lines[0]).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} warn {2}cannot listen port=6443 reason="two words" error="in use"\n$/,
    );
  });

  it("can be silent, children included", () => {
    expect(() => silentLog.child({ a: 1 }).error({}, "nobody hears this")).not.toThrow();
  });
});
