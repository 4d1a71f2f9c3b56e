import { join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../fingerprint.mjs";
import { Problem } from "../say.mjs";

const REPORTER = join(ROOT, "tools/test-run/reporter.mjs");

const OURS = {
  seed: { type: "string" },
  verbose: { type: "boolean" },
  record: { type: "boolean" },
};

/**
 * What `npm test -- ARGS` means to vitest: our flags translated, everything else (files, `-t`, `--project`, other reporters) passed on.
 * @returns {{ flags: string[], env: Record<string, string>, onlyUnit: boolean }}
 */
export function vitestArguments(args, newSeed = () => Date.now() % 100_000) {
  const { tokens } = parseArgs({ args, options: OURS, strict: false, tokens: true });
  const ours = new Set();
  const values = {};
  for (const token of tokens) {
    if (token.kind !== "option" || !(token.name in OURS)) continue;
    values[token.name] = token.value ?? true;
    ours.add(token.index);
    if (token.inlineValue === false) ours.add(token.index + 1);
  }
  const passed = args.filter((_, index) => !ours.has(index));
  const seed = Number(values.seed ?? newSeed());
  if (!Number.isSafeInteger(seed)) throw new Problem(`${values.seed} is not a seed`, "a seed is a whole number");
  const hasSeed = passed.some((arg) => arg.startsWith("--sequence.seed"));
  const flags = [
    `--reporter=${REPORTER}`,
    // Console output then goes the way of all output of a file, in its order.
    "--disableConsoleIntercept=true",
    ...(hasSeed ? [] : [`--sequence.seed=${seed}`]),
    ...passed,
  ];
  const env = {
    ...(values.verbose ? { TEST_VERBOSE: "1" } : {}),
    ...(values.record ? { TEST_RECORD: "1" } : {}),
  };
  return { flags, env, onlyUnit: projectsOf(passed).join() === "unit" };
}

function projectsOf(args) {
  return args.flatMap((arg, index) => {
    if (arg === "--project") return [args[index + 1]];
    return arg.startsWith("--project=") ? [arg.slice("--project=".length)] : [];
  });
}
