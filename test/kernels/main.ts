/** Runs the stories on the kernel that is there, and prints what came of each as a line for whoever started it. */
import { release } from "node:os";
import { isMainThread } from "node:worker_threads";
import { endMachine, prepareMachine } from "./first-process.ts";
import { speakInside } from "./pod.ts";
import { closeLab, SCENARIOS, type Scenario } from "./scenarios.ts";

function printLine(said: Record<string, unknown>): void {
  process.stdout.write(`@@ ${JSON.stringify(said)}\n`);
}

async function report({ name, run }: Scenario): Promise<void> {
  const started = Date.now();
  try {
    const skipped = await run((text) => printLine({ outcome: "note", text }));
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    printLine(skipped ? { outcome: "skipped", story: name, text: skipped } : { outcome: "ok", story: name, seconds });
  } catch (error) {
    printLine({ outcome: "failed", story: name, text: error instanceof Error ? error.stack : String(error) });
  }
}

async function main(): Promise<void> {
  const alone = process.pid === 1;
  if (alone) {
    const refused = prepareMachine();
    printLine({
      outcome: "note",
      text: `${release()}${refused.length > 0 ? `, modules refused: ${refused.join(" ")}` : ""}`,
    });
  }
  const words = process.argv.slice(2);
  const chosen = SCENARIOS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  for (const story of chosen) await report(story);
  await closeLab();
  printLine({ outcome: "end", stories: chosen.length });
  if (alone) endMachine();
  else process.exit();
}

if (isMainThread) await main();
else speakInside();
