import { errorDefinition } from "../../kit/errors.ts";
import { ERROR_SETS } from "../error-sets.ts";
import { errors } from "../errors.ts";
import { formatPairs, print } from "../printer.ts";
import { sentenceOf } from "../sentence-of.ts";
import type { Session } from "../session.ts";

interface Explanation {
  code: string;
  what: string;
  fix?: string;
  exitCode?: number;
}

/** `vendorctl explain CODE`: nothing is asked of any cluster, for when there is none to ask. */
export async function explain(session: Session, _options: object, code: string): Promise<void> {
  const explanation = await findCode(
    code
      .trim()
      .replace(/^\[|\]$/g, "")
      .toUpperCase(),
  );
  if (!explanation) throw errors.UNKNOWN_CODE(code);
  const { what, fix, exitCode } = explanation;
  if (session.flags.output !== "table") return print(session, explanation, () => ({ columns: [], rows: [] }));
  const pairs: [string, string][] = [
    ["code", explanation.code],
    ["what", what],
  ];
  if (fix) pairs.push(["fix", fix]);
  if (exitCode !== undefined) pairs.push(["exit status", String(exitCode)]);
  session.out(formatPairs(pairs));
}

async function findCode(code: string): Promise<Explanation | undefined> {
  await Promise.all(Object.values(ERROR_SETS).map((load) => load()));
  const definition = errorDefinition(code);
  if (!definition) return undefined;
  const { say, fix, exitCode = 1 } = definition;
  return { code, what: sentenceOf(say), fix: fix && sentenceOf(fix, say), exitCode };
}
