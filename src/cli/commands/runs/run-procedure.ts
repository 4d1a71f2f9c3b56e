import type { Dataplane } from "../../../api/dataplane.ts";
import { calicoNames, vendorNames } from "../../../api/names.ts";
import type { ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import type { Client } from "../../../cluster/client.ts";
import { CodedError } from "../../../kit/errors.ts";
import { blockingResults } from "../../../procedures/checks/run-checks.ts";
import { driftSince, fingerprint } from "../../../procedures/fingerprint.ts";
import { isUnaltered } from "../../../procedures/make-plan.ts";
import type { Observation } from "../../../procedures/observation.ts";
import { observe } from "../../../procedures/observe.ts";
import type { OtherTools } from "../../../procedures/other-tools.ts";
import type { Plan, Procedure } from "../../../procedures/plan.ts";
import { blockingItems } from "../../../procedures/plans/upgrade/inventory.ts";
import { errors as upgradeErrors } from "../../../procedures/plans/upgrade/upgrade-errors.ts";
import { namesOf, planRights } from "../../../procedures/rights/plan-rights.ts";
import { requireRights } from "../../../procedures/rights/require-rights.ts";
import { type Engine, refuseStopped, startRun } from "../../../procedures/run/engine.ts";
import { errors as runErrors } from "../../../procedures/run/errors.ts";
import type { ReleaseFiles } from "../../../releases/release-files.ts";
import { commandLine } from "../../command-line.ts";
import { errors } from "../../errors.ts";
import { EXIT } from "../../exit-status.ts";
import type { Session } from "../../session.ts";
import { answerCanI, canIRead, isCanI } from "../auth/can-i.ts";
import { withEngine } from "./open-engine.ts";
import { inventoryText, planText, printPlan } from "./plan.print.ts";
import type { ProcedureFlags } from "./procedure.flags.ts";
import { printReport, showRun } from "./run.print.ts";

/** Inputs of a plan in addition to the observation. */
export interface PlanContext {
  /** The command line that runs what is planned. */
  command: string;
  client: Client;
  files: ReleaseFiles;
  tools: OtherTools;
  signal: AbortSignal;
}

export interface ProcedureRequest {
  procedure: Procedure;
  /** `--kind`. */
  kind?: ClusterKind;
  /** Whether the plan needs to know what is owned through v3 resources. */
  owned?: boolean;
  /** Whether it compares what is stored with what the new release has. */
  stored?: boolean;
  /** The data plane the checks are about, where the command chooses one. */
  dataplane?: Dataplane;
  makePlan(observation: Observation, context: PlanContext): Plan | Promise<Plan>;
  /** Commands to go on with when all is done. */
  next?: readonly string[];
}

/** The one path from a command to a changed cluster: observe, check, plan, print, confirm, run, report. */
export async function runProcedure(session: Session, flags: ProcedureFlags, request: ProcedureRequest): Promise<void> {
  await withEngine(session, flags, async (engine, server) => {
    const { client, files, tools, signal } = engine;
    const command = commandLine(session.argv ?? [request.procedure]);
    const observation = await observeCluster(session, engine, server, { ...request, command }).catch(
      async (error: unknown) => {
        // What the steps need is known only from a plan, and that from an observation.
        if (isCanI(session) && error instanceof CodedError && error.code === "RIGHTS_MISSING") {
          await canIRead(session, client, signal);
        }
        throw error;
      },
    );
    if (!isCanI(session)) refuseBlocked(observation, request, flags);
    const plan = await request.makePlan(observation, { command, client, files, tools, signal });
    await decide(session, flags, engine, plan, request.next);
  });
}

/** `apply -f` of a saved plan: run as it is, or not at all. */
export async function applyPlan(session: Session, flags: ProcedureFlags, plan: Plan): Promise<void> {
  if (!isUnaltered(plan)) throw runErrors.PLAN_ALTERED(plan.id);
  const spoken: Session = { ...session, flags: { ...session.flags, names: plan.names } };
  await withEngine(spoken, flags, async (engine, server) => {
    const owned = plan.observed["owner references"] !== "not read";
    const stored = plan.observed["stored settings"] !== undefined;
    const { procedure, command } = plan;
    const observation = await observeCluster(spoken, engine, server, { procedure, owned, stored, command });
    const drift = driftSince(plan.observed, fingerprint(observation));
    const facts = drift.map(({ fact, was, is }) => `${fact} was ${was} and is ${is}`);
    if (facts.length > 0) throw runErrors.PLAN_DRIFTED(plan.id, facts);
    await decide(spoken, flags, engine, plan, undefined);
  });
}

function observeCluster(
  session: Session,
  { client, signal }: Engine,
  server: string,
  request: Pick<ProcedureRequest, "procedure" | "kind" | "owned" | "stored"> & { command: string },
): Promise<Observation> {
  const names = session.flags.names === "calico" ? calicoNames : vendorNames;
  const { kind, owned, stored, command } = request;
  return observe(client, names, {
    server,
    signal,
    etcd: true,
    command: forAnother(command),
    ...(kind === undefined ? {} : { kind }),
    ...(owned === undefined ? {} : { owned }),
    ...(stored === undefined ? {} : { stored }),
  });
}

/** A failed check keeps its own code, so that `explain` and `--suppress` know it. */
function refuseBlocked(
  observation: Observation,
  { procedure, dataplane }: Pick<ProcedureRequest, "procedure" | "dataplane">,
  { suppress = [] }: ProcedureFlags,
): void {
  const blocked = blockingResults(observation, procedure, { suppress, ...(dataplane && { dataplane }) });
  const [first, ...more] = blocked;
  if (!first) return;
  const others = more.length === 0 ? "" : `; and ${more.length} more: vendorctl check --for ${procedure}`;
  const sentence = `${first.title}: ${first.evidence.join("; ")}${others}`;
  throw new CodedError(first.code, sentence, { fix: first.fix, exitCode: EXIT.checkFailed });
}

async function decide(
  session: Session,
  flags: ProcedureFlags,
  engine: Engine,
  plan: Plan,
  next: readonly string[] = ["vendorctl status"],
): Promise<void> {
  if (isCanI(session)) return await canIRun(session, engine, plan);
  if (session.intent === "diff" || flags.dryRun === "server") {
    const { printDiff } = await import("./diff.print.ts");
    return await printDiff(session, engine, plan, flags.detailedExitcode ?? false);
  }
  if (session.intent === "plan" || flags.dryRun !== undefined) {
    await printPlan(session, plan);
    if (!flags.detailedExitcode) return;
    const { refusePending } = await import("./diff.print.ts");
    return await refusePending(engine, plan);
  }
  if (plan.steps.length === 0) return printPlan(session, plan);
  await refuseLosses(session, plan);
  const { run, undo } = await planRights(plan, engine);
  await requireRights(engine.client, [...run, ...undo], forAnother(plan.command), engine.signal);
  await refuseStopped(engine);
  await confirm(session, flags, await planText(plan, session.config.columns), plan.title);
  const { wait, rollbackOnFailure = false } = flags;
  const report = await showRun(session, startRun(engine, plan, { wait, rollbackOnFailure }));
  const unfinished = report.end?.outcome === "stopped" ? ["vendorctl resume"] : next;
  await printReport(session, report, [...unfinished]);
}

/** A plan is shown whatever would be lost; it is run only if all of that was accepted by name. */
async function refuseLosses(session: Session, plan: Plan): Promise<void> {
  const [blocking, lost] = (["blocks", "lost"] as const).map((fate) =>
    blockingItems(plan.inventory ?? [])
      .filter((item) => item.fate === fate)
      .map(({ name }) => name),
  ) as [string[], string[]];
  if (blocking.length + lost.length === 0) return;
  if (session.flags.output !== "json" && !session.flags.quiet) {
    session.err(`${await inventoryText(plan, session.config.columns)}\n`);
  }
  throw upgradeErrors.UPGRADE_WOULD_LOSE(blocking, lost);
}

/** Whether the user may run this plan, and undo it. */
export async function canIRun(session: Session, engine: Engine, plan: Plan): Promise<void> {
  const { read, run, undo } = await planRights(plan, engine);
  const question = { rights: [...read, ...run, ...undo], name: `vendorctl-${plan.procedure}`, names: namesOf(plan) };
  await answerCanI(session, engine.client, question, engine.signal);
}

/** Where the cluster is and who asks: an administrator has their own. */
const CONNECTION =
  /(?<=^| )(?:--(?:kubeconfig|context|as|as-group|namespace|timeout)|-n)[ =](?:'(?:[^']|'\\'')*'|\S+) ?/g;

/** The words of a command for another user. */
const forAnother = (command: string): string =>
  command
    .replace(/^vendorctl /, "")
    .replace(CONNECTION, "")
    .trim();

/** Shows what is about to happen and asks for a yes. */
export async function confirm(session: Session, flags: { yes?: true }, text: string, what: string): Promise<void> {
  if (session.flags.output !== "json" && !session.flags.quiet) session.err(`${text}\n`);
  if (flags.yes) return;
  if (!session.prompt) throw errors.CONFIRMATION_NEEDED(what);
  const answer = await session.prompt("continue? [y/N] ");
  if (!/^y(es)?$/i.test(answer.trim())) throw errors.NOT_CONFIRMED();
}
