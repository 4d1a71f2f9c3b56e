import type { ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import { observe } from "../../../procedures/observe.ts";
import { planProxy, proxyStatus } from "../../../procedures/plans/kube-proxy/proxy.ts";
import { withCluster } from "../../connect.ts";
import { errors } from "../../errors.ts";
import { nameSet } from "../../name-set.ts";
import { formatPairs, print } from "../../printer.ts";
import type { Session } from "../../session.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { runProcedure } from "../runs/run-procedure.ts";

interface ProxyFlags extends ProcedureFlags {
  kind?: ClusterKind;
  force?: true;
  leaveRules?: true;
}

const NEXT = ["vendorctl proxy status"];

export async function disable(session: Session, flags: ProxyFlags): Promise<void> {
  const { kind, force } = flags;
  await runProcedure(session, flags, {
    procedure: "proxy",
    ...(kind && { kind }),
    makePlan: (observation, { command }) =>
      planProxy(observation, { to: "disabled", command, ...(force && { force }) }),
    next: NEXT,
  });
}

export async function restore(session: Session, flags: ProxyFlags): Promise<void> {
  const { kind, force, leaveRules } = flags;
  await runProcedure(session, flags, {
    procedure: "proxy",
    ...(kind && { kind }),
    makePlan: (observation, { command }) =>
      planProxy(observation, {
        to: "restored",
        command,
        ...(force && { force }),
        ...(leaveRules && { leaveRules }),
      }),
    next: NEXT,
  });
}

/** Changes nothing. A conflict is an exit status too, so that scripts see it. */
export async function status(session: Session, { kind }: Pick<ProxyFlags, "kind">): Promise<void> {
  const seen = await withCluster(session, (client, signal, server) =>
    observe(client, nameSet(session), { server, signal, ...(kind && { kind }) }),
  );
  const found = proxyStatus(seen);
  if (session.flags.output === "table") session.out(await statusText(found, session.config.outColumns));
  else await print(session, found, () => ({ columns: [], rows: [] }));
  if (found.verdict === "conflict" || found.verdict === "nobody serves") {
    throw errors.PROXY_STATUS_BAD(found.says, found.next ?? "vendorctl status");
  }
}

/** The words of the report are stable; these are for people. */
const VERDICTS = {
  ok: "ok",
  conflict: "conflict",
  "nobody serves": "not served",
  "in the way": "progressing",
} as const;

function statusText(found: ReturnType<typeof proxyStatus>, width: number): Promise<string> {
  const { state, mode, modeEvidence, pods, parkedBy, owner, dataplane, managed, rules, way, verdict, says, next } =
    found;
  const pairs: [string, string][] = [
    ["kube-proxy", state === "parked" ? `disabled by ${parkedBy === "hand" ? "a user" : "the operator"}` : state],
    ["mode", `${mode} (${modeEvidence})`],
    ["pods", `${pods.ready} of ${pods.wanted} ready`],
    ["managed by", owner ?? (managed ? "the operator" : "you")],
    ["data plane", dataplane],
    ["its rules", rules === "left alone" ? "kept" : "removed with eBPF"],
    ...(state === "running" ? [["to disable", way] as [string, string]] : []),
    ["verdict", `${VERDICTS[verdict]}: ${says}`],
    ...(next === undefined ? [] : [["next", next] as [string, string]]),
  ];
  return formatPairs(pairs, width);
}
