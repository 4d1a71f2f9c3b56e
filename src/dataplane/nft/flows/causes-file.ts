import { appendFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";

/** What the numbers of denials stand for, on disk: a policy may be gone when packets that it dropped are read. */
export class CausesFile {
  private readonly path: string;
  private causes: Map<number, string[]> | undefined;

  constructor(path: string) {
    this.path = path;
  }

  of(number: number): readonly string[] {
    return this.read().get(number) ?? [];
  }

  /** Before rules with these numbers are written. */
  note(more: ReadonlyMap<number, readonly string[]>): void {
    const known = this.read();
    const lines: string[] = [];
    for (const [number, causes] of more) {
      const there = known.get(number) ?? [];
      const fresh = causes.filter((cause) => !there.includes(cause));
      if (fresh.length === 0) continue;
      known.set(number, [...there, ...fresh]);
      lines.push(...fresh.map((cause) => `${JSON.stringify([number, cause])}\n`));
    }
    if (lines.length === 0) return;
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    appendFileSync(this.path, lines.join(""), { mode: 0o600 });
  }

  clear(): void {
    this.causes = new Map();
    rmSync(this.path, { force: true });
  }

  private read(): Map<number, string[]> {
    if (this.causes) return this.causes;
    this.causes = new Map();
    for (const line of this.lines()) {
      const [number, cause] = parsed(line);
      if (number !== undefined) this.causes.set(number, [...(this.causes.get(number) ?? []), cause]);
    }
    return this.causes;
  }

  private lines(): string[] {
    try {
      return readFileSync(this.path, "utf8").split("\n");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }
}

/** A line that was cut off while it was written was of rules that were not written. */
function parsed(line: string): [number, string] | [undefined, ""] {
  try {
    return JSON.parse(line) as [number, string];
  } catch {
    return [undefined, ""];
  }
}
