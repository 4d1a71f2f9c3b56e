import type { Dataplane } from "../../../api/dataplane.ts";
import type { ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import type { Client } from "../../../cluster/client.ts";
import { CHECKS } from "../../../procedures/checks/all.ts";
import { chosenAddress } from "../../../procedures/checks/api-address.ts";
import type { Purpose } from "../../../procedures/checks/check.ts";
import { builtInInventory } from "../../../procedures/checks/not-carried.ts";
import { runChecks, verdictOf } from "../../../procedures/checks/run-checks.ts";
import type { Observation } from "../../../procedures/observation.ts";
import { observe } from "../../../procedures/observe.ts";
import { probeFromHere } from "../../../procedures/probe/probe-from-here.ts";
import { type Proof, proveAddress } from "../../../procedures/probe/prove-address.ts";
import { withCluster } from "../../connect.ts";
import { errors } from "../../errors.ts";
import { nameSet } from "../../name-set.ts";
import type { Session } from "../../session.ts";
import { canIRead, isCanI } from "../auth/can-i.ts";
import { type CheckReport, printChecks } from "./check.print.ts";

interface CheckFlags {
  pre?: true;
  for?: "install" | "switch" | "upgrade";
  dataplane?: Dataplane;
  kind?: ClusterKind;
  suppress?: string[];
  strict?: true;
  probe: boolean;
}

export async function check(session: Session, flags: CheckFlags): Promise<void> {
  if (isCanI(session)) return await withCluster(session, (client, signal) => canIRead(session, client, signal));
  const purpose = purposeOf(flags);
  const suppress = flags.suppress ?? [];
  const unknown = suppress.find((code) => !CHECKS.some((one) => one.code === code));
  if (unknown !== undefined)
    throw errors.BAD_VALUE("--suppress", unknown, "the code of a check, as check -o json has it");
  const report = await withCluster(session, async (client, signal, server, authority) => {
    const observation = await observeCluster(client, session, flags, { purpose, signal, server });
    const proofs = flags.probe ? await prove(observation, authority, signal) : [];
    const results = runChecks(observation, purpose, {
      proofs,
      suppress,
      ...(flags.dataplane ? { dataplane: flags.dataplane } : {}),
    });
    return reportOf(observation, purpose, results);
  });
  await printChecks(session, report);
  const { fail, warn } = report.counts;
  if (fail > 0) throw errors.CHECKS_FAILED(fail);
  if (warn > 0 && flags.strict) throw errors.CHECKS_WARNED(warn);
}

function purposeOf(flags: CheckFlags): Purpose {
  if (flags.pre && flags.for && flags.for !== "install") {
    throw errors.USAGE(`--pre is before an installation, not before ${flags.for}`, "give one of --pre and --for");
  }
  return flags.for ?? (flags.pre ? "install" : "running");
}

function observeCluster(
  client: Client,
  session: Session,
  { kind }: CheckFlags,
  { purpose, signal, server }: { purpose: Purpose; signal: AbortSignal; server: string },
): Promise<Observation> {
  // Only before an upgrade does it matter who owns what, and asking means reading every kind there is.
  const owned = purpose === "upgrade";
  const more = { owned, stored: owned, etcd: true };
  return observe(client, nameSet(session), { server, signal, ...more, ...(kind ? { kind } : {}) });
}

/** The one address that is or would be used. */
async function prove(observation: Observation, authority: string | undefined, signal: AbortSignal): Promise<Proof[]> {
  const address = chosenAddress(observation);
  if (!address) return [];
  const prober = probeFromHere({ authority });
  return [await proveAddress(prober, address, observation.server, signal)];
}

function reportOf(observation: Observation, purpose: Purpose, results: ReturnType<typeof runChecks>): CheckReport {
  const { kind, service, nodes, server } = observation;
  const count = (status: string) => results.filter((result) => result.status === status).length;
  return {
    apiVersion: "procedures.vendor.io/v1",
    kind: "CheckReport",
    purpose,
    cluster: {
      kind: kind.detected ?? kind.given ?? "generic",
      evidence: kind.evidence,
      nodes: nodes.length,
      version: service.version ?? null,
      apiServer: server.version,
    },
    verdict: verdictOf(results),
    counts: {
      ok: count("ok"),
      warn: count("warn"),
      fail: count("fail"),
      skip: count("skip"),
      suppressed: count("suppressed"),
    },
    results,
    ...(purpose === "upgrade" && { inventory: builtInInventory(observation) ?? [] }),
  };
}
