/**
 * What numbers in the kernel stand for, of rules and of Services. On disk too: a sum is read later than it was counted, maybe in another life,
 * and what it names may be gone from the model by then.
 */
import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** A rule by its id, whose number follows from it; a Service by its number and name. */
type Line = string | [number, string];

/** Names said twice, by many lives: from here on the file is written anew. */
const MOST_REPEATED = 10_000;

export class FlowNames {
  private readonly file: string | undefined;
  private readonly rules = new Map<bigint, string>();
  private readonly services = new Map<number, string>();

  /** Without a file, names are known for this life only. */
  constructor(file?: string) {
    this.file = file;
    if (!file) return;
    mkdirSync(dirname(file), { recursive: true });
    const lines = readLines(file);
    // What comes next is no part of a line that a life before did not finish.
    appendFileSync(file, "\n");
    for (const line of lines) this.learn(line);
    if (lines.length > this.rules.size + this.services.size + MOST_REPEATED) this.rewrite(file);
  }

  /** Before a program with these rules can hit one. */
  addRules(ids: Iterable<string>): void {
    this.append([...new Set(ids)].filter((id) => !this.rules.has(ruleNumber(id))));
  }

  /** Before a frontend has the number. */
  addService(number: number, name: string): void {
    if (this.services.get(number) !== name) this.append([[number, name]]);
  }

  rule(number: bigint): string | undefined {
    return this.rules.get(number);
  }

  service(number: number): string | undefined {
    return this.services.get(number);
  }

  private append(lines: Line[]): void {
    if (lines.length === 0) return;
    for (const line of lines) this.learn(line);
    if (this.file) appendFileSync(this.file, textOf(lines));
  }

  private learn(line: Line): void {
    if (typeof line === "string") this.rules.set(ruleNumber(line), line);
    else this.services.set(...line);
  }

  private rewrite(file: string): void {
    writeFileSync(`${file}.new`, textOf([...this.rules.values(), ...this.services]));
    renameSync(`${file}.new`, file);
  }
}

/** The number that programs remember a rule, or the end of a tier, by: the same in every life. */
export function ruleNumber(id: string): bigint {
  return createHash("sha1").update(id).digest().readBigUInt64LE();
}

function textOf(lines: readonly Line[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

function readLines(file: string): Line[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return text.split("\n").flatMap((line): Line[] => {
    if (line === "") return [];
    try {
      return [JSON.parse(line) as Line];
    } catch {
      // The last one, of a life that was cut short.
      return [];
    }
  });
}
