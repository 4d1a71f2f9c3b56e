import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** A fenced block of a page: ```` ```yaml fragment ```` has the language `yaml` and the flag `fragment`. */
export interface Block {
  page: string;
  /** Line of the opening fence, as an editor counts. */
  line: number;
  language: string;
  flags: string[];
  text: string;
}

export interface Link {
  page: string;
  line: number;
  /** From the root of the repository. */
  path: string;
  anchor: string | undefined;
}

const FENCE = /^(\s*)```(.*)$/;

export function readPage(root: string, page: string): string {
  return readFileSync(join(root, page), "utf8");
}

/** Every fenced block, in order; one that is indented in a list loses the list's indentation. */
export function blocksOf(page: string, text: string): Block[] {
  const blocks: Block[] = [];
  let open: { block: Block; indent: number; lines: string[] } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const fence = FENCE.exec(line);
    if (open === undefined && fence) {
      const [language = "", ...flags] = (fence[2] as string).trim().split(/\s+/);
      const block = { page, line: index + 1, language, flags, text: "" };
      open = { block, indent: (fence[1] as string).length, lines: [] };
    } else if (open && fence?.[2] === "") {
      blocks.push({ ...open.block, text: `${open.lines.join("\n")}\n` });
      open = undefined;
    } else open?.lines.push(line.slice(Math.min(open.indent, line.search(/\S|$/))));
  }
  if (open) throw new Error(`${page}:${open.block.line}: a block that does not end`);
  return blocks;
}

/** Links to files of the repository; addresses elsewhere are not followed. */
export function linksOf(page: string, text: string): Link[] {
  return prose(text).flatMap(({ line, text: words }) =>
    [...words.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = ""]) => {
      if (/^[a-z]+:/.test(target)) return [];
      const [file = "", anchor] = target.split("#");
      const path = file === "" ? page : normalize(join(dirname(page), file));
      return [{ page, line, path, anchor }];
    }),
  );
}

/** Commands in running text, between backticks. */
export function inlineCommands(text: string): { line: number; text: string }[] {
  return prose(text).flatMap(({ line, text: words }) =>
    [...words.matchAll(/`((?:vendorctl|vendor node|vendor probe|kubectl|npm) [^`]+)`/g)].map(([, command = ""]) => ({
      line,
      text: command.replaceAll("\\|", "|"),
    })),
  );
}

/** Files and folders of the repository in running text, between backticks; names in capitals stand for something else. */
export function filePaths(text: string): { line: number; path: string }[] {
  return prose(text).flatMap(({ line, text: words }) =>
    [...words.matchAll(/`((?:src|test|bpf|tools|bin|docs|manifests|charts)\/[\w./-]*)`/g)]
      .filter(([, path = ""]) => !/[A-Z]{3,}/.test(path.replace(/DESIGN\.md|README\.md/, "")))
      .map(([, path = ""]) => ({ line, path })),
  );
}

/** Words such as `RUN_HELD` in running text, between backticks. */
export function codeWords(text: string): { line: number; word: string }[] {
  return prose(text).flatMap(({ line, text: words }) =>
    [...words.matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`/g)].map(([, word = ""]) => ({ line, word })),
  );
}

/** The anchors that GitHub gives the headings of a page. */
export function anchorsOf(text: string): Set<string> {
  const headings = prose(text).flatMap(({ text: line }) => /^#{1,6} (.+)$/.exec(line)?.[1] ?? []);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .trim()
        .replace(/\s/g, "-"),
    ),
  );
}

/** Lines outside of fenced blocks. */
function prose(text: string): { line: number; text: string }[] {
  let inside = false;
  return text.split("\n").flatMap((line, index) => {
    const fence = FENCE.test(line);
    if (fence) inside = !inside;
    return fence || inside ? [] : [{ line: index + 1, text: line }];
  });
}
