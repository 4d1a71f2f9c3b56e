import { EXPLANATIONS } from "../../../api/validation/explain.ts";
import { errorDefinition } from "../../../kit/errors.ts";
import { ERROR_SETS, errorPage } from "../../error-sets.ts";
import { errors } from "../../errors.ts";
import { FIX_BY_REASON, reasonOfApiCode } from "../../failure.ts";
import { formatPairs, print } from "../../printer.ts";
import type { Session } from "../../session.ts";

/** What is known of a code, in the order it is printed. */
export interface Explanation {
  code: string;
  title: string;
  why?: string;
  /** A line as it is printed; the fix is the one that is printed with it. */
  example?: string;
  fix?: string;
  rule?: string;
  /** Pages to read. */
  see?: string;
  exitCode?: number;
}

/** `vendorctl explain CODE`: nothing is asked of any cluster, for when there is none to ask. */
export async function explain(session: Session, _options: object, code: string): Promise<void> {
  const bare = code
    .trim()
    .replace(/^\[|\]$/g, "")
    .toUpperCase();
  const explanation = await explanationOf(bare);
  if (!explanation) throw errors.UNKNOWN_CODE(code);
  if (session.flags.output !== "table") return print(session, explanation, () => ({ columns: [], rows: [] }));
  const pairs = Object.entries(explanation).map(([label, value]) => [LABELS[label] ?? label, String(value)] as const);
  session.out(await formatPairs(pairs, session.config.outColumns));
}

/** The same for `explain` and for the printed reference. */
export async function explanationOf(code: string): Promise<Explanation | undefined> {
  return (
    problemInAResource(code) ?? (await findingOfACheck(code)) ?? refusalOfAnApi(code) ?? (await failureOfAProgram(code))
  );
}

const LABELS: Record<string, string> = { title: "what", exitCode: "exit status" };

/** What validation can say about a resource or a cluster. */
function problemInAResource(code: string): Explanation | undefined {
  const known = Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code] : undefined;
  return known && { code, title: known.title, why: known.why, fix: known.fix, rule: known.rule };
}

/** What `check` can find. */
async function findingOfACheck(code: string): Promise<Explanation | undefined> {
  const { checkExplanation } = await import("../../../procedures/checks/all.ts");
  const known = checkExplanation(code);
  return known && { code, title: known.title, why: known.why, fix: known.fix, rule: known.rule };
}

/** What an API server can answer; the set is the server's, so any reason is known. */
function refusalOfAnApi(code: string): Explanation | undefined {
  const reason = reasonOfApiCode(code);
  if (!reason) return undefined;
  const fix = FIX_BY_REASON[reason];
  const title = `the API server refused the request, with the reason ${reason}; the error has its message`;
  return { code, title, ...(fix ? { fix } : {}), exitCode: 1 };
}

/** What a program can fail with, this one or another. */
async function failureOfAProgram(code: string): Promise<Explanation | undefined> {
  await Promise.all(Object.values(ERROR_SETS).map((load) => load()));
  const definition = errorDefinition(code);
  if (!definition) return undefined;
  const { means, example = [], say, fix, exitCode = 1 } = definition;
  return {
    code,
    title: means,
    example: `error: ${say(...example)} [${code}]`,
    ...(fix ? { fix: fix(...example) } : {}),
    see: [await errorPage(code), `docs/reference/errors.md#${code.toLowerCase()}`].filter(Boolean).join(", "),
    exitCode,
  };
}
