import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { commandOf, keysText, SHORTCUTS } from "./keys.ts";

const ELSEWHERE = { isText: false, isControl: false };

it("two keys that begin with g choose a screen, and the second one alone is another command", () => {
  expect(commandOf("f", "g", ELSEWHERE)).toEqual({ do: "screen", screen: "flows" });
  expect(commandOf("f", "", ELSEWHERE)).toEqual({ do: "fit" });
  expect(commandOf("m", "", ELSEWHERE)).toBeUndefined();
});

it("a field for text keeps its keys, and a button its own", () => {
  expect(commandOf("j", "", { isText: true, isControl: false })).toBeUndefined();
  expect(commandOf("Escape", "", { isText: true, isControl: false })).toEqual({ do: "close" });
  expect(commandOf("Enter", "", { isText: false, isControl: true })).toBeUndefined();
  expect(commandOf("j", "", { isText: false, isControl: true })).toEqual({ do: "step", by: 1 });
});

it("no key has two meanings, and each is shown as it is on a keyboard", () => {
  const shown = SHORTCUTS.flatMap(keysText);
  expect(new Set(shown).size).toBe(shown.length);
  expect(shown).toEqual(expect.arrayContaining(["space", "g m", "Esc", "↓"]));
});

it("the guide has the same table", () => {
  const guide = readFileSync(new URL("../docs/guide/flow-ui.md", import.meta.url), "utf8");
  const rows = SHORTCUTS.map((shortcut) => {
    const keys = keysText(shortcut).map((key) => `\`${key}\``);
    return `| ${keys.join(", ")} | ${shortcut.about} |`;
  });
  expect(guide).toContain(rows.join("\n"));
});
