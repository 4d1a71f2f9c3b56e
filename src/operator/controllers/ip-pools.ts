import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../api/object.ts";
import { type IpamReport, readIpamReport } from "../../api/protocol/ipam-report.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import type { InstallationSpec } from "../../api/resources/installation.ts";
import type { IPPool } from "../../api/resources/ip-pool.ts";
import { overlaps, parseCidr } from "../../kit/ip.ts";
import { applyObject, deleteObject, MANAGER } from "../apply.ts";
import { storedKind } from "../managed-kinds.ts";
import { isLeaving, nodeAgents, type Observed, theOne } from "../observed.ts";
import { absent, degraded, type Outcome, progressing, ready } from "../outcome.ts";
import { ADOPTED, isOurs, planIpPools } from "../plan-ip-pools.ts";
import { poolObjects } from "../pool-objects.ts";
import type { ReconcileContext } from "../reconcile-context.ts";
import { ownLabels } from "../render/metadata.ts";

type Pool = IPPool & KubeObject;

/** The pools the installation lists. They have no owner reference: those to remove with the installation are removed here. */
export async function reconcileIpPools(observed: Observed, hands: ReconcileContext): Promise<Outcome> {
  const installation = theOne(observed.installations);
  if (!installation || isLeaving(installation)) return removeAll(observed, hands);
  const spec = installation.status?.computed as InstallationSpec | undefined;
  if (!spec) return progressing("the installation to be accepted");
  const plan = planIpPools(poolObjects(spec), observed.pools);
  const [refusal] = plan.refusals;
  if (refusal) return degraded(refusal.reason, plan.refusals.map(({ message }) => message).join(" "));
  for (const pool of plan.apply) await applyObject(hands.tools, pool);
  const waiting = await retire(hands, plan.retire);
  if (waiting) return progressing(waiting, 5_000);
  const report = ipamReportOf(observed);
  if (report && report.duplicates.length > 0) return degraded("AddressDuplicate", duplicatesMessage(report));
  return ready(
    `${plan.apply.length} ${plan.apply.length === 1 ? "pool" : "pools"}${plan.apply.length === 0 ? ": created by others" : `: ${plan.apply.map(({ spec }) => spec.cidr).join(", ")}`}.${leaksMessage(report)}${servicesMessage(report)}`,
    [
      `${plan.apply.length} IPPools as the Installation lists them, none of another owner overlaps`,
      ...(report ? ["addresses of all nodes: none is on two pods, as vendor-kube-controllers reports"] : []),
    ],
  );
}

/** Of the copy of vendor-kube-controllers that reports: the one with the lease. */
function ipamReportOf({ pods }: Observed): IpamReport | undefined {
  const running = pods.filter((pod) => !isLeaving(pod));
  return running.map(({ metadata }) => readIpamReport(metadata.annotations)).find((report) => report !== undefined);
}

function duplicatesMessage({ duplicates }: IpamReport): string {
  const [namespace, name] = (duplicates[0]?.pods.at(-1) ?? "").split("/");
  const [first, ...more] = duplicates.map(({ address, pods }) => `${address} is the address of ${pods.join(" and ")}`);
  return withFix(
    `${first}${more.length > 0 ? `, and ${more.length} more addresses are duplicate` : ""}.`,
    `kubectl -n ${namespace} delete pod ${name}`,
  );
}

function leaksMessage(report: IpamReport | undefined): string {
  const { leakedAddresses = 0, blocksWithoutNode = 0 } = report ?? {};
  const parts = [
    leakedAddresses > 0 ? `${leakedAddresses} addresses without a pod` : [],
    blocksWithoutNode > 0 ? `${blocksWithoutNode} blocks without a node` : [],
  ].flat();
  return parts.length === 0 ? "" : ` ${parts.join(" and ")} will be released.`;
}

/** It does not degrade the status: whoever may create a Service could do that. */
function servicesMessage(report: IpamReport | undefined): string {
  const [first, ...more] = report?.servicesWithoutAddress ?? [];
  if (!first) return "";
  const others = more.length > 0 ? `; and ${more.length} more Services` : "";
  return ` Service ${first.service} has no address: ${first.why}${others}.`;
}

/** First no new addresses, then, when none is in use, away with it. */
async function retire(hands: ReconcileContext, pools: readonly Pool[]): Promise<string | undefined> {
  const waiting: string[] = [];
  for (const pool of pools) {
    if (isLeaving(pool)) waiting.push(`IPPool ${pool.metadata.name} to be deleted`);
    else if (pool.spec.disabled !== true) {
      await disable(hands, pool);
      waiting.push(`IPPool ${pool.metadata.name} to allocate no more addresses`);
    } else {
      const used = await addressesInUse(hands, pool);
      if (used === 0) await deleteObject(hands.tools, pool);
      waiting.push(
        used === 0
          ? `IPPool ${pool.metadata.name} to be deleted`
          : `${used} addresses of IPPool ${pool.metadata.name} to be released`,
      );
    }
  }
  return waiting.length === 0 ? undefined : waiting.join("; ");
}

async function disable(hands: ReconcileContext, pool: Pool): Promise<void> {
  const { apiVersion, kind, metadata, spec } = pool;
  const labels = ownLabels("ippools");
  await applyObject(hands.tools, {
    apiVersion,
    kind,
    metadata: { name: metadata.name, labels },
    spec: { ...spec, disabled: true },
  });
}

interface Block extends KubeObject {
  spec?: { cidr?: string; allocations?: (number | null)[] };
}

/** Asked only when a pool is to go. */
async function addressesInUse({ tools }: ReconcileContext, pool: Pool): Promise<number> {
  const prefix = parseCidr(pool.spec.cidr);
  const { items } = await tools.client.list<Block>(storedKind("ipamBlock"), { signal: tools.signal });
  const inside = items.filter(({ spec }) => {
    const block = parseCidr(spec?.cidr ?? "");
    return prefix && block && overlaps(prefix, block);
  });
  return inside.reduce((sum, { spec }) => sum + (spec?.allocations ?? []).filter((index) => index !== null).length, 0);
}

/** After the agents: while one runs, its pods have addresses of these. An adopted pool is left to its creator. */
async function removeAll(observed: Observed, hands: ReconcileContext): Promise<Outcome> {
  const ours = observed.pools.filter(isOurs);
  if (ours.length === 0) return absent();
  if (nodeAgents(observed)) return progressing("the agents to stop");
  for (const pool of ours)
    await (pool.metadata.annotations?.[ADOPTED] ? releasePool(hands, pool) : deleteObject(hands.tools, pool));
  return progressing("the IP pools to be deleted", 1_000);
}

async function releasePool({ tools }: ReconcileContext, { apiVersion, kind, metadata }: Pool): Promise<void> {
  const place = storedKind("ipPool");
  const nothing = { apiVersion, kind, metadata: { name: metadata.name } };
  const written = await tools.client.apply(place, nothing, {
    fieldManager: MANAGER,
    force: true,
    signal: tools.signal,
  });
  tools.onWrite("applied");
  tools.live.wrote(place, written);
  if (isDeepStrictEqual(written.metadata.labels, metadata.labels))
    tools.log.warn({ pool: metadata.name }, "cannot release the pool");
}
