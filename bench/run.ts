import { formatTable } from "../src/cli/printer.ts";

/** One measured number. `beside` is what it is compared with, in the same unit. */
export interface Row {
  name: string;
  value: number;
  unit: string;
  beside?: { name: string; value: number };
}

export type Bench = () => Promise<Row[]>;

/** Runs one bench file and prints its rows; with `--json`, as one line of JSON for a program to read. */
export async function runBench(name: string, run: Bench, json: boolean): Promise<void> {
  const rows = await run();
  if (json) process.stdout.write(`${JSON.stringify({ bench: name, rows })}\n`);
  else process.stdout.write(`${name}\n${await formatTable({ columns: COLUMNS, rows: rows.map(cells) })}\n`);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

const COLUMNS = ["NAME", "VALUE", "UNIT", "BESIDE", "RATIO"];

function cells({ name, value, unit, beside }: Row): string[] {
  if (!beside) return [name, number(value), unit, "", ""];
  return [name, number(value), unit, `${beside.name} ${number(beside.value)}`, (value / beside.value).toFixed(2)];
}

function number(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits);
}
