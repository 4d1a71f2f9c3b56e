import { expect, it } from "vitest";
import { readCliConfig } from "./config.ts";

const tty = { isTTY: true, columns: 120 };

it.each([
  ["a terminal", {}, tty, { color: true, interactive: true }],
  ["a pipe", {}, {}, { color: false, interactive: false }],
  ["NO_COLOR on a terminal", { NO_COLOR: "1" }, tty, { color: false, interactive: true }],
  ["an empty NO_COLOR, which means nothing", { NO_COLOR: "" }, tty, { color: true, interactive: true }],
  ["CI with a terminal", { CI: "true" }, tty, { color: false, interactive: false }],
  ["FORCE_COLOR in a pipe", { FORCE_COLOR: "1" }, {}, { color: true, interactive: false }],
  ["NO_COLOR against FORCE_COLOR", { NO_COLOR: "1", FORCE_COLOR: "1" }, {}, { color: false, interactive: false }],
  ["a dumb terminal", { TERM: "dumb" }, tty, { color: false, interactive: false }],
])("%s", (_name, environment, stream, expected) => {
  expect(readCliConfig(environment, stream)).toMatchObject(expected);
});
