import { dirname, relative } from "node:path";

const FOLDER = "test/attacks";
/** Suites of one data plane have its name in their title, in quotes where vitest filled it in. */
const PLANES = { NFTABLES: /,? '?nftables\b'?/, EBPF: /,? '?eBPF\b'?/ };
const ANY = "ANY PLANE";
const COLUMNS = [...Object.keys(PLANES), ANY];
const WORDS = { passed: "held", failed: "FELL", skipped: "skipped", pending: "not run" };

/** A vitest reporter for runs of test/attacks alone, next to vitest's own. Runs by `npm test` have the same lines by the project's reporter. */
export default class AttackList {
  #out;
  #root = process.cwd();

  constructor({ out = process.stdout } = {}) {
    this.#out = out;
  }

  onInit(vitest) {
    this.#root = vitest.config.root;
  }

  onTestRunEnd(modules) {
    for (const line of attackListOf(modules, this.#root)) this.#out.write(`${line}\n`);
  }
}

/** Every attack case with its verdict on each data plane; nothing where the run had other tests, too. */
export function attackListOf(modules, root) {
  const pathOf = ({ moduleId }) => relative(root, moduleId);
  // Below the folder are tests of what the attacks are made with.
  const attacks = modules.filter((module) => dirname(pathOf(module)) === FOLDER);
  if (attacks.length === 0 || !modules.every((module) => pathOf(module).startsWith(`${FOLDER}/`))) return [];
  const cases = attacks.flatMap((module) =>
    [...module.children.allTests()].map((test) => caseOf(test.fullName, test.result().state)),
  );
  return ["", ...attackLines(cases)];
}

/** The name of a test has its suites before it: `suite, nftables (why skipped) > test`. */
export function caseOf(fullName, state) {
  const [suite, ...rest] = fullName.split(" > ");
  const plane = Object.keys(PLANES).find((name) => PLANES[name].test(suite)) ?? ANY;
  const about = suite.replace(PLANES[plane] ?? "", "").replace(/ \(.*\)$/, "");
  return { name: [about, ...rest].join(": "), plane, verdict: WORDS[state] ?? state };
}

/** A row per attack, a column per data plane, and the count. */
export function attackLines(cases) {
  const rows = new Map();
  for (const { name, plane, verdict } of cases) rows.set(name, { ...rows.get(name), [plane]: verdict });
  const table = [["ATTACK", ...COLUMNS]];
  for (const [name, verdicts] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1))) {
    table.push([name, ...COLUMNS.map((column) => verdicts[column] ?? "-")]);
  }
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join("  ")
      .trimEnd(),
  );
  const count = (word) => cases.filter(({ verdict }) => verdict === word).length;
  const others = [WORDS.skipped, WORDS.pending].flatMap((word) => (count(word) > 0 ? [`${count(word)} ${word}`] : []));
  const counts = [`${count(WORDS.passed)} held`, `${count(WORDS.failed)} fell`, ...others].join(", ");
  return [...lines, "", `${rows.size} attacks, ${cases.length} cases: ${counts}`];
}
