// Subjects of commits: `area: imperative`, short enough for a log, with a body that says why. Holds for commits that are new since BASE.
import { run as runCommand } from "./say.mjs";

/** Commits up to here were made before the rule. */
const BASE = "2848647f";
/** Merged while the check was being written: without a body, or too long. */
const EARLIER = new Set(["582efbe28c", "dadda07544", "5d13032bbe", "e54f394025"]);
const LONGEST = 72;
/** One word or a path of the tree, or two of them: `bpf/nat`, `cli, docs`. */
const SHAPE = /^[a-z0-9][\w./-]*(?:, ?[a-z0-9][\w./-]*)*: (\S.*)$/;
/** The first word of an imperative has none of these endings: "adds", "added", "adding". */
const NOT_IMPERATIVE = /^(?:\w{2,}ing|\w{2,}ed|(?!\w*(?:ss|us|is)$)\w{2,}s)$/i;
/** Imperatives and nouns that only look otherwise. */
const IMPERATIVE =
  /^(?:need|embed|feed|seed|speed|shed|bring|string|ping|process|access|address|pass|press|focus|discuss|guess|bus|alias)$/i;

/**
 * @param {{ hash: string, parents: number, subject: string, body: string }[]} commits
 * @returns {string[]} one line per problem
 */
export function commitProblems(commits) {
  return commits.flatMap(({ hash, parents, subject, body }) => {
    // A merge says what was merged; what it brings is checked by itself.
    if (parents > 1 || EARLIER.has(hash.slice(0, 10))) return [];
    return [...subjectProblems(subject), ...(body.trim() === "" ? ["has no body: say why"] : [])].map(
      (problem) => `${hash.slice(0, 8)} "${subject}": ${problem}`,
    );
  });
}

function subjectProblems(subject) {
  const problems = [];
  if (subject.length > LONGEST) problems.push(`has ${subject.length} characters, more than ${LONGEST}`);
  const what = SHAPE.exec(subject)?.[1];
  if (what === undefined) return [...problems, "is not `area: imperative`"];
  const [first] = what.split(/[\s:,]/);
  if (NOT_IMPERATIVE.test(first) && !IMPERATIVE.test(first))
    problems.push(`does not begin with an imperative: ${first}`);
  if (/[.!]$/.test(what)) problems.push("ends with a full stop");
  return problems;
}

/**
 * Commits of this checkout since BASE, or why they cannot be known: an archive has no history, a shallow clone not all of it.
 * @param {(args: string[]) => { ok: boolean, text: string }} git
 */
export function newCommits(git = (args) => runCommand("git", args)) {
  if (!git(["rev-parse", "--git-dir"]).ok) return { skipped: "there is no git history here" };
  if (!git(["cat-file", "-e", `${BASE}^{commit}`]).ok || !git(["merge-base", "--is-ancestor", BASE, "HEAD"]).ok) {
    return { skipped: `commit ${BASE} is not in this clone's history` };
  }
  const listed = git(["log", "--format=%H%x1f%P%x1f%s%x1f%b%x1e", `${BASE}..HEAD`]);
  if (!listed.ok) return { skipped: `git log failed: ${listed.text}` };
  const commits = listed.text.split("\x1e").flatMap((record) => {
    const [hash, parents, subject, body] = record.trimStart().split("\x1f");
    if (subject === undefined) return [];
    return [{ hash, parents: parents.split(" ").filter((one) => one !== "").length, subject, body }];
  });
  return { commits };
}
