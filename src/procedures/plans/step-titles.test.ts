import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** A step is one line of a table at 80 columns and of a log: its title is short, and says what is done as a command would. */
const LONGEST = 40;
const VERBS =
  /^(?:Apply|Compare|Copy|Create|Delete|Disable|Enable|Hold|Install|Keep|Lock|Migrate|Open|Remove|Restart|Restore|Save|Set|Start|Switch|Take|Upgrade|Verify|Wait) /;

/** The longest thing each placeholder of a title stands for. */
const LONGEST_VALUES: Readonly<Record<string, string>> = {
  meshVersion: "1.15.10",
  file: "vendor-overlay-etcd.yaml",
  carried: ", 99 edits",
  word: "Nftables",
  "to.encapsulation": "VXLANCrossSubnet",
  wanted: "2/2",
  whom: "wave 99 of 99",
  "target.kind": "Installation",
  "target.name": "default",
  status: "flow-logs",
  'statuses.slice(0, 3).join(", ")': "network, ippools, apiserver",
  "within ? to : `${line}.x`": "v3.31.10",
};

/** `title: "…"`, or a template, or a choice of two, right behind the id of a step. */
const TITLE = /\bid: [^\n]*?,\s+title:\s*((?:[^"`,]*(?:"[^"]*"|`(?:[^`$]|\$\{(?:[^{}`]|`[^`]*`|\{[^}]*\})*\})*`))+)/g;

function titles(source: string): string[] {
  const texts = /"([^"]*)"|`((?:[^`$]|\$\{(?:[^{}`]|`[^`]*`|\{[^}]*\})*\})*)`/g;
  return [...source.matchAll(TITLE)]
    .flatMap(([, value = ""]) => [...value.matchAll(texts)])
    .map(([, plain, template]) => plain ?? template ?? "")
    .filter((text) => text.includes(" "));
}

/** With every placeholder at its longest; a choice between two texts is the longer one. */
function atItsLongest(title: string): string {
  return title.replace(/\$\{((?:[^{}`]|`[^`]*`|\{[^}]*\})*)\}/g, (_all, expression: string) => {
    const choice = /\? "([^"]*)" : "([^"]*)"$/.exec(expression);
    if (choice) return (choice[1] ?? "").length > (choice[2] ?? "").length ? choice[1]! : choice[2]!;
    const value = LONGEST_VALUES[expression];
    if (value === undefined) throw new Error(`say how long "${expression}" of "${title}" can be`);
    return value;
  });
}

const folder = new URL("./", import.meta.url);
const ALL = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .flatMap((name) => titles(readFileSync(new URL(name, folder), "utf8")).map((title) => [name, title] as const));

it("finds the titles of all plans", () => {
  expect(ALL.length).toBeGreaterThan(50);
});

it.each(ALL)("%s: %s", (_file, title) => {
  const longest = atItsLongest(title);
  expect(longest).toMatch(VERBS);
  expect(longest.length, longest).toBeLessThanOrEqual(LONGEST);
});
