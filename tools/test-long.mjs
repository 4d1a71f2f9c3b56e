// npm run test:long [-- NAME…]: every long run, one after the other, or those that are named. --list prints them. A green run of committed
// files is recorded in test/long-runs.json.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./fingerprint.mjs";
import { Problem, run, runAsScript, say } from "./say.mjs";
import { inMinutes } from "./test-run/estimate.mjs";
import { LONG_RUNS, listLines, verdictOf } from "./test-run/long-runs.mjs";

const RECORDS = "test/long-runs.json";

async function main(args) {
  if (args.includes("--list")) {
    for (const line of listLines(readRecords())) say(line);
    return 0;
  }
  const strange = args.find((arg) => !LONG_RUNS.some(({ name }) => name === arg));
  if (strange) {
    throw new Problem(`there is no long run ${strange}`, `choose from ${LONG_RUNS.map(({ name }) => name).join(", ")}`);
  }
  const chosen = LONG_RUNS.filter(({ name }) => args.length === 0 || args.includes(name));
  const ends = [];
  for (const longRun of chosen) ends.push(await runOne(longRun));
  for (const { line } of ends) say(line);
  return ends.every(({ ok }) => ok) ? 0 : 1;
}

async function runOne(longRun) {
  const { name } = longRun;
  say(`== ${name}: ${longRun.proves}`);
  const started = Date.now();
  const { status, text } = await runAndListen(longRun);
  const seconds = Math.round((Date.now() - started) / 1000);
  const verdict = verdictOf(status, text);
  const took = inMinutes(seconds);
  if (!verdict.green) return { ok: status === 0, line: `not green  ${name} (${took}): ${verdict.why}` };
  const unrecorded = record(name, seconds);
  return { ok: true, line: `green      ${name} (${took})${unrecorded ? `, not recorded: ${unrecorded}` : ""}` };
}

/** Runs a long run and shows what it prints while it goes on: hours are long without a word. */
function runAndListen({ tool, files, env }) {
  // One file at a time: what they measure of traffic must not be the other's load.
  const command = tool ?? ["tools/test.mjs", "--verbose", "--maxWorkers=1", ...files];
  const child = spawn(process.execPath, command, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ["inherit", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk) => {
    text += chunk;
    process.stdout.write(chunk);
  });
  return new Promise((resolve) => child.on("close", (status) => resolve({ status: status ?? 1, text })));
}

/** Returns why it was not recorded: a record names a commit, so what ran must be that commit. */
function record(name, seconds) {
  const commit = run("git", ["rev-parse", "--short=12", "HEAD"]);
  const changes = run("git", ["status", "--porcelain", "--", ".", `:!${RECORDS}`]);
  if (!commit.ok || !changes.ok) return "this is not a git checkout";
  if (changes.text !== "") return "there are uncommitted changes";
  const records = readRecords();
  records[name] = { date: new Date().toISOString().slice(0, 10), commit: commit.text, seconds };
  const sorted = Object.fromEntries(LONG_RUNS.flatMap(({ name }) => (records[name] ? [[name, records[name]]] : [])));
  writeFileSync(join(ROOT, RECORDS), `${JSON.stringify(sorted, null, 2)}\n`);
  return undefined;
}

function readRecords() {
  return JSON.parse(readFileSync(join(ROOT, RECORDS), "utf8"));
}

await runAsScript(import.meta.url, main);
