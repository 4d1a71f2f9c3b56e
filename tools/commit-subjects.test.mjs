import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commitProblems, newCommits } from "./commit-subjects.mjs";

const problems = (subject, body = "Because.", parents = 1) =>
  commitProblems([{ hash: "0123456789abcdef", parents, subject, body }]);

describe("a subject", () => {
  it.each([
    "bpf/nat: prefer free SNAT ports",
    "cli, docs: print references of commands",
    "agent: process events that arrive early",
    "test: a single lost datagram is not a connection that hangs",
    `kit: ${"x".repeat(67)}`,
  ])("%s", (subject) => {
    expect(problems(subject)).toEqual([]);
  });

  it.each([
    ["The way that is broken is the one with the most unanswered", "is not `area: imperative`"],
    ["cli:print a table", "is not `area: imperative`"],
    ["cli: prints a table", "does not begin with an imperative: prints"],
    ["cli: added a table", "does not begin with an imperative: added"],
    ["cli: printing a table", "does not begin with an imperative: printing"],
    ["cli: print a table.", "ends with a full stop"],
    [`kit: ${"x".repeat(68)}`, "has 73 characters, more than 72"],
  ])("%s: no", (subject, problem) => {
    expect(problems(subject)).toEqual([`01234567 "${subject}": ${problem}`]);
  });

  it("has a body that says why, unless it is a merge's", () => {
    expect(problems("cli: print a table", "\n")).toEqual(['01234567 "cli: print a table": has no body: say why']);
    expect(problems("Merge branch 'docs'", "", 2)).toEqual([]);
  });
});

describe("a checkout", () => {
  let directory;
  const git = (args) => {
    try {
      return { ok: true, text: execFileSync("git", args, { cwd: directory, encoding: "utf8", stdio: "pipe" }).trim() };
    } catch (error) {
      return { ok: false, text: String(error.stderr) };
    }
  };
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "commits-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it("without history is skipped, and says so", () => {
    // A parent of the directory for temporary files may be a checkout.
    const outside = (args) => (args[0] === "rev-parse" ? { ok: false, text: "" } : git(args));
    expect(newCommits(outside)).toEqual({ skipped: "there is no git history here" });
  });

  it("whose history does not reach far enough is skipped, and says so", () => {
    git(["init", "-q"]);
    git(["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"]);
    expect(newCommits(git).skipped).toMatch(/is not in this clone's history/);
  });

  it("gives the commits since the base, with their parents and bodies", () => {
    const log = "h1\x1fp1\x1fcli: print\x1fWhy.\n\x1e\nh2\x1fp1 p2\x1fMerge\x1f\x1e";
    const answers = { "rev-parse": ".git", "cat-file": "", "merge-base": "", log };
    expect(newCommits(([command]) => ({ ok: true, text: answers[command] }))).toEqual({
      commits: [
        { hash: "h1", parents: 1, subject: "cli: print", body: "Why.\n" },
        { hash: "h2", parents: 2, subject: "Merge", body: "" },
      ],
    });
  });
});
