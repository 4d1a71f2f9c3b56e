import { someText } from "../../flags.ts";

export const ACCEPT_LOSS = "go on although what has this name in the plan ends with it (repeatable)";

export const lossNames = (text: string, before: string[] = []): string[] => [
  ...before,
  someText("--accept-loss", "a name of the plan's inventory")(text),
];
