import { expect, it } from "vitest";
import { readCliConfig } from "./config.ts";
import { openProgress, type ProgressEvent } from "./progress.ts";
import type { Session } from "./session.ts";

const running: ProgressEvent = { event: "step", id: "nodes", state: "running", text: "2 of 3 nodes" };
const done: ProgressEvent = { event: "step", id: "nodes", state: "done", text: "3 nodes" };

async function shown(interactive: boolean, events: ProgressEvent[], color = false): Promise<string> {
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
  for (const event of events) progress.report(event);
  return text;
}

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
  const long: ProgressEvent = { event: "step", id: "x", state: "running", text: "a".repeat(50) };
  expect(screen(await shown(true, [long]))[0]).toHaveLength(19);
});

it("writes plain lines elsewhere, one per change", async () => {
  expect(await shown(false, [running, running, done, { event: "note", text: "by the way" }])).toBe(
    "..  2 of 3 nodes\nok  3 nodes\nby the way\n",
  );
});

it("colours only when told to", async () => {
  expect(await shown(false, [done], true)).toBe("\x1b[32mok\x1b[39m  3 nodes\n");
});
