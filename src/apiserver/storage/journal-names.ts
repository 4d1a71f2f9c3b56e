/** The files of a data directory by number, ascending. What has another name is not the journal's. */
export interface DirectoryNames {
  readonly snapshots: readonly number[];
  readonly logs: readonly number[];
}

export function logName(number: number): string {
  return `log-${String(number).padStart(10, "0")}`;
}

export function snapshotName(number: number): string {
  return `snapshot-${String(number).padStart(10, "0")}`;
}

export function temporary(name: string): string {
  return `${name}.tmp`;
}

/** What a crash left of a snapshot that was being written. */
export function isLeftover(name: string): boolean {
  return /^snapshot-\d{10}\.tmp$/.test(name);
}

export function sortNames(names: readonly string[]): DirectoryNames {
  return { snapshots: numbersOf(names, /^snapshot-(\d{10})$/), logs: numbersOf(names, /^log-(\d{10})$/) };
}

function numbersOf(names: readonly string[], pattern: RegExp): number[] {
  const numbers = names.map((name) => pattern.exec(name)?.[1]).filter((number) => number !== undefined);
  return numbers.map(Number).sort((a, b) => a - b);
}
