import { expect, it } from "vitest";
import { parse } from "yaml";
import { guarded, printable, printableLine, Styled, styled } from "./printable.ts";
import { toYaml } from "./to-yaml.ts";

it.each([
  ["ESC", "\x1b[31m"],
  ["CSI of C1", "\x9b2J"],
  ["carriage return", "\r"],
  ["bell", "\x07"],
  ["delete", "\x7f"],
  ["a bidirectional override", "\u202e"],
  ["a bidirectional isolate", "\u2066"],
  ["a line separator", "\u2028"],
])("shows %s instead of printing it", (_name, sign) => {
  expect(printable(`a${sign}b`)).toMatch(/^a\\u[0-9a-f]{4}.*b$/);
});

it("keeps the value of JSON, and lines and tabs of text", () => {
  const value = { name: "\x1b\x9b\u202e" };
  expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(value);
  expect(printable("a\n\tb")).toBe("a\n\tb");
  expect(printableLine("a\n\tb")).toBe("a\\n b");
});

it("keeps the value of YAML", () => {
  const value = { name: "\x1b\x9b\u202e", text: "a\nb" };
  expect(parse(printable(toYaml(value)))).toEqual(value);
});

it("cleans questions, too", async () => {
  const asked: string[] = [];
  const prompt = async (question: string) => String(asked.push(question));
  await guarded({ out() {}, err() {}, prompt }).prompt("Delete pool \x1b[8mevil\x1b[0m?");
  expect(asked).toEqual(["Delete pool \\u001b[8mevil\\u001b[0m?"]);
});

it("lets only styles of our own pass the last stop", () => {
  const printed: string[] = [];
  const print = (text: string | Styled) => void printed.push(String(text));
  const world = guarded(guarded({ out: print, err: print }));
  world.out("\x1b[2J");
  world.err(styled`${Styled.raw("\x1b[32mok\x1b[39m")} ${"\x1b[8m"}`);
  expect(printed).toEqual(["\\u001b[2J", "\x1b[32mok\x1b[39m \\u001b[8m"]);
});
