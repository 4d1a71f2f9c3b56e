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

it.each([
  ["a terminal's own width", {}, tty, tty, { columns: 120, outColumns: 120 }],
  ["COLUMNS on a terminal", { COLUMNS: "100" }, tty, tty, { columns: 100, outColumns: 100 }],
  ["a terminal that does not know its width", {}, { isTTY: true }, { isTTY: true }, { columns: 80, outColumns: 80 }],
  ["a COLUMNS that is no width", { COLUMNS: "wide" }, tty, tty, { columns: 120 }],
  [
    "results in a pipe",
    { COLUMNS: "80" },
    tty,
    {},
    { columns: 80, outColumns: Number.POSITIVE_INFINITY, color: false },
  ],
])("%s", (_name, environment, stream, out, expected) => {
  expect(readCliConfig(environment, stream, out)).toMatchObject(expected);
});
