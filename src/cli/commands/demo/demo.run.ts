import type { TrafficRow } from "../../../api/protocol/traffic-report.ts";
import { CodedError } from "../../../kit/errors.ts";
import type { StepEvent } from "../../../procedures/run/step-event.ts";
import { errors } from "../../errors.ts";
import { printFailureNow } from "../../failure.ts";
import { wrapped } from "../../printer.ts";
import { openProgress, type ProgressEvent } from "../../progress.ts";
import type { Session } from "../../session.ts";
import { runVendorctl } from "../../vendorctl.ts";
import type { ClusterCommands } from "../cluster/cluster-commands.ts";
import { seconds } from "../runs/run.print.ts";

/** In a command: where the files of the release before this one are. */
const RELEASE_BEFORE = "RELEASE-BEFORE";
const DEMO = "demo";
const OLD = "demo-old";
/** The tool as a checkout has it, from the folder that npm runs in. */
const TOOL = "./bin/vendorctl";
const WIDTH = 80;

/** A command as a user would type it, and how much of its output the demo shows. */
interface Typed {
  words: readonly string[];
  /** Steps and runs are summed up in a line or two; of other output, all or the last line is shown. */
  shows: "all" | "last line" | "the steps" | "the run";
  /** Left out where nodes are simulated. */
  needsPackets?: true;
}

/** One cluster of the demo: how it is made, and what is run on it. */
interface Chapter {
  name: string;
  intro: string;
  up: readonly string[];
  commands: readonly Typed[];
  /** Shown instead when the cluster is there from a former start. */
  again: readonly Typed[];
}

const typed = (line: string, shows: Typed["shows"] = "all"): Typed => ({ words: line.split(" "), shows });

const CHAPTERS: readonly Chapter[] = [
  {
    name: DEMO,
    intro:
      "A new cluster: install with eBPF and flow logs, switch to the nftables data plane and back, upgrade. Canary traffic is measured all the while. The release before this one is this build under the older version.",
    up: ["--kind", "generic", "--nodes", "3"],
    commands: [
      typed("check --pre", "last line"),
      typed(`install -y --manifest-url ${RELEASE_BEFORE}`, "the run"),
      { ...typed("flows enable --ui -y", "the run"), needsPackets: true },
      typed("switch --to standard -y", "the run"),
      typed("switch --to bpf -y", "the run"),
      typed("upgrade -y", "the run"),
      typed("status"),
    ],
    again: [typed("status"), typed("proxy status")],
  },
  {
    name: OLD,
    intro:
      "A cluster with v3.27, upgraded to this release. v3 resources own objects in it, and their UIDs change with v3.28: a manual upgrade would lose those objects.",
    up: ["--kind", "generic", "--nodes", "2", "--installed", "v3.27", "--method", "operator"],
    commands: [typed("check --for upgrade", "last line"), typed("upgrade -y", "the run")],
    again: [typed("version"), typed("history")],
  },
];

/** `npm start`: the product on embedded clusters, by commands that can be pasted. Run again, it shows how the clusters are. */
export async function runDemo(
  session: Session,
  { simulated, paper }: { simulated?: true; paper?: true },
): Promise<void> {
  const commands = await session.loadClusterCommands();
  for (const chapter of CHAPTERS) {
    await play(session, commands, {
      ...chapter,
      up: [...chapter.up, ...(simulated || paper ? ["--runtime", "simulated"] : [])],
    });
  }
  const next = await Promise.all([DEMO, OLD].map((name) => commands.kubeconfig({ name })));
  const { flowUI = "" } = (await commands.list()).find(({ name }) => name === DEMO) ?? {};
  session.out(whatToTry(next[0] ?? "", next[1] ?? "", flowUI));
}

async function play(session: Session, commands: ClusterCommands, chapter: Chapter): Promise<void> {
  const { name, intro } = chapter;
  session.out(`\n${(await wrapped(intro, { width: WIDTH })).join("\n")}\n`);
  const found = async () => (await commands.list()).find((cluster) => cluster.name === name);
  const running = (await found())?.state === "running";
  if (running) session.out(`Cluster ${name} is running already.\n`);
  else
    await printLine(session, {
      words: ["cluster", "up", "--name", name, ...chapter.up, "--detach"],
      shows: "the steps",
    });
  const kubeconfig = await commands.kubeconfig({ name });
  const { url } = await commands.releaseBefore();
  const simulated = (await found())?.simulated === true;
  const lines = running ? chapter.again : chapter.commands;
  for (const { words, shows } of lines.filter(({ needsPackets }) => !(needsPackets && simulated))) {
    await printLine(session, { words: words.map((word) => (word === RELEASE_BEFORE ? url : word)), shows }, kubeconfig);
  }
}

/** Prints one command as it can be pasted, runs it, and prints what it came to. */
async function printLine(session: Session, { words, shows }: Typed, kubeconfig?: string): Promise<void> {
  if (session.signal.aborted) throw errors.INTERRUPTED();
  const where = kubeconfig === undefined ? "" : `KUBECONFIG=${kubeconfig} `;
  session.out(`\n$ ${where}${TOOL} ${words.join(" ")}\n`);
  const flags = kubeconfig === undefined ? [] : ["--kubeconfig", kubeconfig];
  const exitCode = await HOW[shows](session, [...words, ...flags]);
  if (exitCode !== 0) throw errors.STORY_STOPPED(words.join(" "), exitCode);
}

/** The command in this process; errors are shown in any case. */
function run(session: Session, argv: readonly string[], out: (text: string) => void, quiet: boolean): Promise<number> {
  const { flags: _flags, argv: _argv, ...world } = session;
  const failures = (text: Parameters<Session["err"]>[0]) => {
    if (!quiet) session.err(text);
    else printFailureIn(session, String(text));
  };
  return runVendorctl(argv, { ...world, out: (text) => out(String(text)), err: failures });
}

/** With `-o json`, an error is an object on a line of its own. */
function printFailureIn(session: Session, text: string): void {
  for (const line of text.split("\n").filter((one) => one.startsWith('{"event":"error"'))) {
    const { code, message, fix } = JSON.parse(line) as { code: string; message: string; fix?: string };
    printFailureNow(session, new CodedError(code, message, { fix }));
  }
}

type How = (session: Session, argv: readonly string[]) => Promise<number>;

const HOW: Readonly<Record<Typed["shows"], How>> = {
  all: (session, argv) => show(session, argv),
  "last line": (session, argv) => show(session, argv, 1),
  "the steps": sumUpSteps,
  "the run": sumUpRun,
};

/** Without what the command suggests to run next: the demo has its own order, and a suggestion lacks the cluster. */
async function show(session: Session, argv: readonly string[], last = Number.POSITIVE_INFINITY): Promise<number> {
  let text = "";
  const keep = (part: string) => {
    text += part;
  };
  const exitCode = await run(session, argv, keep, false);
  const lines = text.trimEnd().split("\n");
  const ordinary = lines.filter((line) => !line.startsWith("next:")).slice(-last);
  session.out((exitCode === 0 ? ordinary : lines).map((line) => `${line}\n`).join(""));
  return exitCode;
}

/** Steps of a command that is no run: how many there were and how long they took. */
async function sumUpSteps(session: Session, argv: readonly string[]): Promise<number> {
  const progress = await openProgress({ ...session, flags: { ...session.flags, output: "table" } });
  const id = argv.slice(0, 2).join(" ");
  const began = performance.now();
  let done = 0;
  const follow = (text: string) => {
    for (const line of text.split("\n").filter(Boolean)) {
      const event = JSON.parse(line) as ProgressEvent | { event: "result" };
      if (event.event === "note") progress.report(event);
      if (event.event !== "step") continue;
      if (event.state === "done") done++;
      else progress.report({ event: "step", id, state: "running", text: id, waitingFor: event.text });
    }
  };
  const exitCode = await run(session, [...argv, "-o", "json"], follow, true);
  const text = exitCode === 0 ? `${done} steps in ${seconds(performance.now() - began)}` : "failed";
  progress.report({ event: "step", id, state: exitCode === 0 ? "done" : "failed", text });
  progress.close();
  return exitCode;
}

interface Result extends Omit<Extract<StepEvent, { event: "end" }>, "event"> {
  event: "result";
  traffic?: readonly TrafficRow[];
}

/** Steps are shown while they run, on a terminal; what stays is how long it took and what traffic lost. */
async function sumUpRun(session: Session, argv: readonly string[]): Promise<number> {
  const progress = await openProgress({ ...session, flags: { ...session.flags, output: "table" } });
  const id = argv[0] ?? "";
  let result: Result | undefined;
  const verified: string[] = [];
  const follow = (text: string) => {
    for (const line of text.split("\n").filter(Boolean)) {
      const event = JSON.parse(line) as StepEvent | Result;
      if (event.event === "result") result = event;
      if (event.event === "say" && event.id === "prove-owned-objects") verified.push(event.text);
      if (event.event === "step" && event.state === "running") {
        const waitingFor = `${event.number}/${event.of}  ${event.title}`;
        progress.report({ event: "step", id, state: "running", text: id, waitingFor });
      }
    }
  };
  const exitCode = await run(session, [...argv, "-o", "json"], follow, true);
  const text = result ? `${result.done} steps in ${seconds(result.ms)}` : "failed";
  progress.report({ event: "step", id, state: exitCode === 0 ? "done" : "failed", text });
  progress.close();
  for (const line of verified) session.out(`    ${line}\n`);
  if (result?.traffic) session.out(`${trafficLine(result.traffic)}\n`);
  return exitCode;
}

function trafficLine(rows: readonly TrafficRow[]): string {
  const sum = (count: (row: TrafficRow) => number) => rows.reduce((total, row) => total + count(row), 0);
  const tcp = `${sum(({ lost }) => lost)} of ${sum(({ opened }) => opened)} connections lost`;
  const udp = `${sum(({ unanswered }) => unanswered)} of ${sum(({ sent }) => sent)} datagrams unanswered`;
  return `    traffic: ${tcp}, ${udp}, longest silence ${Math.max(0, ...rows.map(({ silenceMs }) => silenceMs))} ms`;
}

function whatToTry(demo: string, old: string, flowUI: string): string {
  return `
As root, nodes of the new cluster are network namespaces with real agents and
packets. Elsewhere, and on the older cluster, they are simulated: no packets.

Try next:
  export KUBECONFIG=${demo}
  ${TOOL} flows verdict:deny
  ${TOOL} switch --to standard --no-waves
  ${TOOL} rollback
  ${TOOL} plan uninstall
  kubectl get vendorstatus -w

  export KUBECONFIG=${old}
  kubectl get configmaps -n shop -o yaml

Other platforms: ${TOOL} cluster up --help
Stop everything: npm stop

Flow UI: ${flowUI}, for this user of this machine
`;
}
