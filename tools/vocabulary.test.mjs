import { describe, expect, it } from "vitest";
import { stringsOf } from "./source-strings.mjs";
import { failedChecks } from "./verify.mjs";
import { vocabularyProblems } from "./vocabulary.mjs";

const find = (path, text) => vocabularyProblems(new Map([[path, text]]));

describe("a replaced word is found", () => {
  it.each([
    [
      "in a text of a program",
      "src/cli/x.ts",
      'fail("nobody answers");',
      'src/cli/x.ts:1: "nobody" in "nobody answers"',
    ],
    ["in a template", "src/cli/x.ts", `const a = 1;\nsay(\`$\{a} ways are measured\`);`, 'src/cli/x.ts:2: "ways" in'],
    ["in a value of two words", "src/cli/x.ts", 'table("hand-over");', '"hand-over"'],
    ["in a description of a flag", "src/cli/x.ts", 'option("--x", "BPF unless told");', "(default: x)"],
    ["in a document", "docs/guide/x.md", "# Switch\n\nThe old plane is put back.", 'docs/guide/x.md:3: "put back"'],
    ["in design notes", "src/kit/DESIGN.md", "What this room promises.", '"room"'],
    ["in the name of a file", "src/agent/dead-man.ts", "", 'the name says "dead man": rollback watchdog'],
    ["in the name of a folder", "test/handover/load.ts", "", "switchover"],
    [
      "in the name of an export",
      "src/agent/x.ts",
      "\nexport async function tellPeers() {}",
      "src/agent/x.ts:2: tellPeers",
    ],
    ["for the data plane", "src/cli/x.ts", 'say("on the standard data plane");', "nftables"],
    ["for kube-proxy", "docs/x.md", "The service proxy runs.", "kube-proxy"],
    ["for an actor", "docs/x.md", "Everyone may read it; no one may write it.", '"Everyone"'],
    ["for desired state", "docs/x.md", "The wanted routes.", "desired"],
    ["in a constant", "src/api/x.ts", 'export const ON_PAPER = "x";', "ON_PAPER"],
  ])("%s", (_where, path, text, problem) => {
    expect(find(path, text)).toEqual([expect.stringContaining(problem)]);
  });
});

describe("left alone are", () => {
  it.each([
    ["comments", "src/cli/x.ts", "// nobody is told\n/* a story */ const a = 1;"],
    ["module specifiers", "src/cli/x.ts", 'import { a } from "./put back.ts"; await import("./a story.ts");'],
    ["keys and values of programs", "src/cli/x.ts", 'const a = { told: "story" };'],
    ["regular expressions", "src/cli/x.ts", "const a = /nobody is told/; const b = 4 / 2;"],
    ["titles of tests", "src/cli/x.test.ts", 'it("nobody is told", () => {});'],
    ["code in documents", "docs/x.md", "Run `vendor node dead-man`.\n\n```sh\necho nobody is told\n```"],
    [
      "words that only look like them",
      "docs/x.md",
      "Always besides a showroom; both ways; a history; discarded; two ways to go.",
    ],
    ["names on disk", "src/agent/x.ts", 'const file = "run/dead-man.json was read";'],
    ["what is inside of a name", "src/agent/x.ts", "export const history = 1; export class Gateways {}"],
  ])("%s", (_what, path, text) => {
    expect(find(path, text)).toEqual([]);
  });
});

describe("npm run verify fails on a planted word", () => {
  it.each([
    ["in a string", "src/cli/x.ts", 'fail("nobody answers");'],
    ["in a document", "README.md", "Nobody answers."],
    ["in the name of a file", "src/agent/dead-man.ts", ""],
    ["in the name of an export", "src/agent/x.ts", "export const story = 1;"],
  ])("%s", async (_where, path, text) => {
    expect(await failedChecks([["vocabulary", () => find(path, text)]])).toBe(1);
  });

  it("and not without one", async () => {
    expect(await failedChecks([["vocabulary", () => find("README.md", "The agent answers.")]])).toBe(0);
  });
});

describe("flow is a word of flow logs", () => {
  it.each([
    ["an export of a data plane", "src/dataplane/x.ts", "export interface OldFlow {}", ["OldFlow says"]],
    ["an export of flow logs", "src/operator/x.ts", "export const flowLogsPort = 1; ", []],
    ["an export in a file of flow logs", "src/flows/config.ts", "export class FlowsConfig {}", []],
    ["text about conntrack", "docs/x.md", "Idle flows expire.", ["conntrack entry"]],
    ["text about flow logs", "docs/x.md", "Flow logs record flows.", []],
  ])("%s", (_what, path, text, problems) => {
    expect(find(path, text)).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });
});

it("reads literals with their lines, templates with what is inside of them", () => {
  const source =
    'const a = "x\\"y"; // "no"\nconst b = `one #{f("two", `three #{c}`)} four`;\nconst c = a / b / "five".length;'.replaceAll(
      "#",
      "$",
    );
  expect(stringsOf(source)).toEqual([
    { line: 1, text: 'x\\"y' },
    { line: 2, text: "one … four" },
    { line: 2, text: "two" },
    { line: 2, text: "three …" },
    { line: 3, text: "five" },
  ]);
});
