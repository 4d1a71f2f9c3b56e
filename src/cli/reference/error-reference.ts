import { EXPLANATIONS } from "../../api/validation/explain.ts";
import { definedCodes } from "../../kit/errors.ts";
import { CHECKS } from "../../procedures/checks/all.ts";
import { type Explanation, explanationOf } from "../commands/check/explain.run.ts";
import { ERROR_SETS } from "../error-sets.ts";
import { EXIT_MEANINGS } from "./exit-meanings.ts";
import { anchor, code, GENERATED, plain, sentence } from "./markdown.ts";

/** Where an error comes from, in the words of the guides; by the first folder of the file that declares it. */
const AREAS: Readonly<Record<string, string>> = {
  cli: "vendorctl",
  cluster: "Connection to the cluster",
  procedures: "Procedures",
  releases: "Files of a release",
  operator: "Operator",
  agent: "Node agent",
  cni: "CNI plugin",
  controllers: "vendor-kube-controllers",
  v3api: "vendor.io/v3 API server",
  flows: "Flow logs",
  dataplane: "Data planes",
  kernel: "Linux kernel",
  local: "Embedded cluster",
  apiserver: "API server of the embedded cluster",
  api: "Schemas",
};

const VALIDATION = "Validation of resources";

export async function errorReference(): Promise<string> {
  const byArea = await codesByArea();
  const sections = await Promise.all([...byArea].map(([area, codes]) => areaSection(area, codes)));
  return [
    GENERATED("the errors declared with defineErrors, and src/api/validation"),
    "# Error reference\n",
    "Every error has a stable code. The tool prints it in brackets, the operator at the end of a status message. " +
      "`vendorctl explain CODE` prints the same text, without a cluster. Codes of `vendorctl check` are in the [check reference](checks.md).\n",
    "The values in an example, and in the fix after it, are of one case. Where no exit status is given, the code is reported and does not end a command.\n",
    ...[...byArea.keys()].map((area) => `- [${area}](#${anchor(area)})`),
    "",
    ...sections,
  ].join("\n");
}

async function codesByArea(): Promise<Map<string, string[]>> {
  const byArea = new Map<string, string[]>();
  const add = (area: string, codes: readonly string[]) => byArea.set(area, [...(byArea.get(area) ?? []), ...codes]);
  const checks = new Set(CHECKS.map((check) => check.code));
  const loaded = await Promise.all(
    Object.entries(ERROR_SETS).map(async ([path, load]) => [path, await load()] as const),
  );
  for (const name of Object.keys(AREAS)) {
    for (const [path, module] of loaded) if (path.split("/", 1)[0] === name) add(areaOf(path), codesOf(module));
  }
  for (const [path, module] of loaded)
    if (AREAS[path.split("/", 1)[0]!] === undefined) add(areaOf(path), codesOf(module));
  // A file that keeps its errors to itself declares them all the same.
  const claimed = new Set([...byArea.values()].flat());
  add(
    AREAS["api"]!,
    definedCodes().filter((one) => !claimed.has(one)),
  );
  add(
    VALIDATION,
    Object.keys(EXPLANATIONS).filter((one) => !checks.has(one)),
  );
  return new Map([...byArea].filter(([, codes]) => codes.length > 0));
}

function areaOf(path: string): string {
  const folder = path.split("/", 1)[0]!;
  return AREAS[folder] ?? folder;
}

function codesOf(module: unknown): string[] {
  const { errors } = module as { errors?: Record<string, unknown> };
  return Object.keys(errors ?? {});
}

async function areaSection(area: string, codes: readonly string[]): Promise<string> {
  const known = await Promise.all([...codes].sort().map(explained));
  return [`## ${area}\n`, ...known.map(errorSection)].join("\n");
}

async function explained(one: string): Promise<Explanation> {
  const explanation = await explanationOf(one);
  if (!explanation) throw new Error(`${one} is declared and cannot be explained`);
  return explanation;
}

/** One code; its heading is the anchor others link to. */
function errorSection({ code: name, title, why, example, fix, rule, exitCode }: Explanation): string {
  return [
    `### ${name}\n`,
    `${sentence(plain(title))}${why ? ` ${sentence(plain(why))}` : ""}\n`,
    ...(example ? [`- Example: ${code(example)}`] : []),
    ...(fix ? [`- Fix: ${sentence(plain(fix))}`] : []),
    ...(rule ? [`- Rule: ${sentence(plain(rule))}`] : []),
    ...(exitCode === undefined ? [] : [`- Exit status: ${code(String(exitCode))} (${meaningOf(name, exitCode)})`]),
    "",
  ].join("\n");
}

function meaningOf(name: string, status: number): string {
  const meaning = EXIT_MEANINGS[status];
  if (meaning === undefined) throw new Error(`${name} exits with ${status}, which exit-meanings.ts does not list`);
  return meaning;
}
