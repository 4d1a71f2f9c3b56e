import type { Panel, Screen } from "./url-state.ts";

export type Command =
  | { do: "query" }
  | { do: "step"; by: number }
  | { do: "explain" }
  | { do: "close" }
  | { do: "screen"; screen: Screen }
  | { do: "panel"; panel: Exclude<Panel, "none"> }
  | { do: "pause" }
  | { do: "fit" }
  | { do: "table" }
  | { do: "help" };

interface Shortcut {
  keys: readonly string[];
  /** After `g`. */
  isSecond?: boolean;
  about: string;
  command: Command;
}

/** The table of the help, and of docs/guide/flow-ui.md. */
export const SHORTCUTS: readonly Shortcut[] = [
  { keys: ["/"], about: "write a query", command: { do: "query" } },
  { keys: ["j", "ArrowDown"], about: "next flow or run", command: { do: "step", by: 1 } },
  { keys: ["k", "ArrowUp"], about: "previous flow or run", command: { do: "step", by: -1 } },
  { keys: ["PageDown"], about: "a page down", command: { do: "step", by: 20 } },
  { keys: ["PageUp"], about: "a page up", command: { do: "step", by: -20 } },
  { keys: ["e", "Enter"], about: "why: the chosen flow", command: { do: "explain" } },
  { keys: ["p"], about: "propose policies for these flows", command: { do: "panel", panel: "propose" } },
  { keys: ["w"], about: "write a policy, and preview it", command: { do: "panel", panel: "preview" } },
  { keys: ["Escape"], about: "close", command: { do: "close" } },
  { keys: [" "], about: "pause, or go on", command: { do: "pause" } },
  { keys: ["f"], about: "fit the map into the window", command: { do: "fit" } },
  { keys: ["t"], about: "the map as a table, or as a picture", command: { do: "table" } },
  { keys: ["f"], isSecond: true, about: "flows", command: { do: "screen", screen: "flows" } },
  { keys: ["m"], isSecond: true, about: "map", command: { do: "screen", screen: "map" } },
  { keys: ["p"], isSecond: true, about: "policies", command: { do: "screen", screen: "policies" } },
  { keys: ["c"], isSecond: true, about: "compare", command: { do: "screen", screen: "compare" } },
  { keys: ["r"], isSecond: true, about: "runs", command: { do: "screen", screen: "runs" } },
  { keys: ["?"], about: "this help", command: { do: "help" } },
];

const FIRST = "g";

/** Where a key was pressed. */
export interface KeyPlace {
  /** A field for text has all keys to itself but Escape. */
  isText: boolean;
  /** A button or a link has Enter and the space bar to itself. */
  isControl: boolean;
}

/** `before`: the key before it, if it was `g`. */
export function commandOf(key: string, before: string, { isText, isControl }: KeyPlace): Command | undefined {
  if (isText && key !== "Escape") return undefined;
  if (isControl && (key === "Enter" || key === " ")) return undefined;
  const isSecond = before === FIRST;
  return SHORTCUTS.find((shortcut) => (shortcut.isSecond ?? false) === isSecond && shortcut.keys.includes(key))
    ?.command;
}

export function isFirstKey(key: string): boolean {
  return key === FIRST;
}

const SHOWN: Readonly<Record<string, string>> = { " ": "space", ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" };

export function keysText({ keys, isSecond }: Pick<Shortcut, "keys" | "isSecond">): string[] {
  return keys.map((key) => `${isSecond ? `${FIRST} ` : ""}${SHOWN[key] ?? key}`);
}
