import type { Condition, KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";

/** One VendorStatus, as a person reads it. */
export interface ReportedStatus {
  available: boolean;
  progressing: boolean;
  degraded: boolean;
  reason: string;
  message: string;
  observedGeneration: number | undefined;
}

interface Conditioned extends KubeObject {
  status?: { conditions?: Condition[] };
}

/** What the status of a part says now; undefined when there is none. */
async function statusOf(client: Client, part: string): Promise<ReportedStatus | undefined> {
  try {
    return told(await client.get<Conditioned>(storedKind("status"), { name: part }));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

export async function allStatuses(client: Client): Promise<Record<string, ReportedStatus>> {
  const { items } = await client.list<Conditioned>(storedKind("status"));
  return Object.fromEntries(items.map((item) => [item.metadata.name, told(item)]));
}

function told({ status }: Conditioned): ReportedStatus {
  const of = (type: string) => status?.conditions?.find((condition) => condition.type === type);
  const is = (type: string) => of(type)?.status === "True";
  const main = of("Available");
  // A part that works but for single objects is both, and its reason is why it is Degraded.
  const shown = is("Degraded") ? of("Degraded") : main;
  return {
    available: is("Available"),
    progressing: is("Progressing"),
    degraded: is("Degraded"),
    reason: shown?.reason ?? "",
    message: shown?.message ?? "",
    observedGeneration: main?.observedGeneration,
  };
}

const PATIENCE_MS = 40_000;

/** Waits until a part's status is as the story says; fails with what all of them say. */
export async function untilStatus(
  client: Client,
  part: string,
  is: (told: ReportedStatus) => boolean,
  withinMs = PATIENCE_MS,
): Promise<ReportedStatus> {
  const began = Date.now();
  for (;;) {
    const now = await statusOf(client, part);
    if (now && is(now)) return now;
    if (Date.now() - began > patience(withinMs)) {
      throw new Error(`${part} still: ${JSON.stringify(await allStatuses(client), undefined, 1)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Waits until the part works, and has seen what the Installation says now. */
export async function untilAvailable(client: Client, part: string, withinMs = PATIENCE_MS): Promise<ReportedStatus> {
  const installation = await client.get(storedKind("installation"), { name: "default" });
  const { generation } = installation.metadata;
  return untilStatus(
    client,
    part,
    ({ available, observedGeneration }) => available && (part !== "network" || observedGeneration === generation),
    withinMs,
  );
}
