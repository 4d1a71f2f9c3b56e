import { expect, it, vi } from "vitest";
import { readCliConfig } from "./config.ts";
import { openProgress, type ProgressEvent } from "./progress.ts";
import type { Session } from "./session.ts";

const running: ProgressEvent = { event: "step", id: "nodes", state: "running", text: "2 of 3 nodes" };
const done: ProgressEvent = { event: "step", id: "nodes", state: "done", text: "3 nodes" };

async function shown(interactive: boolean, events: ProgressEvent[], color = false): Promise<string> {
  const progress = await open(interactive, color);
  for (const event of events) progress.report(event);
  progress.close();
  return progress.text();
}

async function open(interactive: boolean, color = false) {
  let text = "";
  const session: Session = {
    config: { ...readCliConfig({}, {}), interactive, columns: 20 },
    out: () => {},
    err: (part) => {
      text += part;
    },
    signal: new AbortController().signal,
    loadClusterCommands: () => Promise.reject(new Error("not part of this story")),
    flags: { output: "table", color, v: 0, names: "vendor" },
  };
  const progress = await openProgress(session);
  return { ...progress, text: () => text };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there.
const HOSTILE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]/;

const ESC = "\x1b";
const CONTROL = new RegExp(`${ESC}\\[(\\d+)A|\\r${ESC}\\[0J|\\n|[^${ESC}\\r\\n]+`, "g");

/** What a terminal would show: applies the few control sequences that live lines use. */
function screen(text: string): string[] {
  const lines = [""];
  for (const [part, up] of text.matchAll(CONTROL)) {
    if (up) lines.length -= Number(up);
    else if (part === "\n") lines.push("");
    else if (part.startsWith("\r")) lines[lines.length - 1] = "";
    else lines[lines.length - 1] += part;
  }
  return lines.slice(0, -1);
}

it("redraws what is under way for a person, and keeps what is done", async () => {
  const other: ProgressEvent = { event: "step", id: "api", state: "running", text: "API server" };
  expect(screen(await shown(true, [running, other]))).toEqual(["..  2 of 3 nodes", "..  API server"]);
  expect(screen(await shown(true, [running, other, done]))).toEqual(["ok  3 nodes", "..  API server"]);
  expect(screen(await shown(true, [running, { event: "note", text: "by the way" }]))).toEqual([
    "by the way",
    "..  2 of 3 nodes",
  ]);
});

it("cuts a live line to the terminal's width, because a wrapped line cannot be redrawn", async () => {
  const long: ProgressEvent = {
    event: "step",
    id: "x",
    state: "running",
    text: "a".repeat(50),
    waitingFor: "b".repeat(50),
  };
  for (const line of screen(await shown(true, [long]))) expect(line).toHaveLength(19);
  const settled: ProgressEvent = { event: "step", id: "x", state: "done", text: "a".repeat(50) };
  expect(screen(await shown(true, [long, settled]))).toEqual([`ok  ${"a".repeat(14)}…`]);
});

it("shows what a running step waits for on a line of its own, and how long it has taken", async () => {
  vi.useFakeTimers();
  try {
    const events = await open(true);
    events.report({ ...running, waitingFor: "two pods" });
    expect(screen(events.text())).toEqual(["..  2 of 3 nodes", "    two pods"]);
    await vi.advanceTimersByTimeAsync(2_100);
    expect(screen(events.text())).toEqual(["..  2 of 3 nod…  2s", "    two pods"]);
    events.report(done);
    expect(screen(events.text())).toEqual(["ok  3 nodes"]);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

it("draws nothing more once it is closed", async () => {
  vi.useFakeTimers();
  try {
    const events = await open(true);
    events.report(running);
    events.close();
    const before = events.text();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(events.text()).toBe(before);
  } finally {
    vi.useRealTimers();
  }
});

it("writes a line per step elsewhere, once it is settled", async () => {
  const note: ProgressEvent = { event: "note", text: "by the way" };
  expect(await shown(false, [running, running, done, done, note])).toBe("ok  3 nodes\nby the way\n");
});

it("reports a step that runs for a minute in a log, with what it waits for", async () => {
  vi.useFakeTimers();
  try {
    const events = await open(false);
    events.report({ ...running, waitingFor: "waiting for two pods" });
    expect(events.text()).toBe("");
    await vi.advanceTimersByTimeAsync(60_100);
    expect(events.text()).toBe("..  2 of 3 nodes  1m0s: waiting for two pods\n");
    events.close();
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

it("never prints a control character that came in a text", async () => {
  const hostile: ProgressEvent = { event: "step", id: "x", state: "done", text: "a\x1b[2Jb\r\u202ec" };
  expect(await shown(false, [hostile])).toBe("ok  a\\u001b[2Jb\\u000d\\u202ec\n");
  expect(screen(await shown(true, [hostile, { event: "note", text: "x\x9b1A" }])).join("|")).not.toMatch(HOSTILE);
});

it("colours only where it is asked to", async () => {
  expect(await shown(false, [done], true)).toBe("\x1b[32mok\x1b[39m  3 nodes\n");
});

it("keeps the numbers of steps aligned, and leaves out where a step was done if that does not fit", async () => {
  const step = (id: string, text: string, detail: string): ProgressEvent => ({
    event: "step",
    id,
    state: "done",
    text,
    detail,
  });
  const events = [
    step("a", " 9/13  Wait", "a"),
    step("b", "10/13  Wait", "a long name of an object"),
    step("c", " 1/13  Wait for the rollout", ""),
  ];
  expect(screen(await shown(true, events))).toEqual(["ok   9/13  Wait  a", "ok  10/13  Wait", "ok   1/13  Wait fo…"]);
  expect(screen(await shown(false, events.slice(1, 2)))).toEqual(["ok  10/13  Wait  a long name of an object"]);
});
