import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

/** The page with what was typed and shown, by kind of cluster. */
export const TRANSCRIPTS = resolve("docs/guide/eight-steps.md");
const FIRST_KIND = /^## /m;

/** Replaces the sections of the kinds, and leaves the introduction and other kinds as they are. */
export function recordTranscripts(sections: ReadonlyMap<string, readonly string[]>): void {
  const page = readFileSync(TRANSCRIPTS, "utf8");
  const all = new Map(sectionsOf(page));
  for (const [kind, lines] of sections) all.set(kind, `${lines.join("\n").trim()}\n`);
  const text = [...all].map(([kind, section]) => `## ${kind}\n\n${section}`).join("\n");
  writeFileSync(TRANSCRIPTS, `${page.split(FIRST_KIND)[0]}${text}`);
}

export function sectionsOf(page: string): [kind: string, section: string][] {
  return page
    .split(FIRST_KIND)
    .slice(1)
    .map((section) => {
      const [kind = "", ...lines] = section.split("\n");
      return [kind, `${lines.join("\n").trim()}\n`];
    });
}

/** What was typed, in order. */
export function typedIn(section: string): string[] {
  return section.split("\n").flatMap((line) => (line.startsWith("$ ") ? [line.slice(2)] : []));
}
