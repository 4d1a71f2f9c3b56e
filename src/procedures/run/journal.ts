import type { KubeObject } from "../../api/object.ts";
import { compareVersions, parseVersion } from "../../api/tables/version.ts";
import type { Client } from "../../cluster/client.ts";
import { isAlreadyExists, isConflict } from "../../cluster/failures.ts";
import { SECRETS } from "../../cluster/kinds.ts";
import type { CodedError } from "../../kit/errors.ts";
import { undefinedIfNotFound } from "../actions/objects/target.ts";
import { isUnaltered } from "../make-plan.ts";
import type { Plan } from "../plan.ts";
import { errors } from "./errors.ts";
import type { LocalCopy } from "./local-copy.ts";
import { pack, unpack } from "./packed.ts";
import { FORMAT, isUnfinished, type RunRecord } from "./run-record.ts";

/** A run as `history` finds it: one whose record cannot be read is still one. */
export type FoundRun = { id: string; startedAt: string } & (
  | { record: RunRecord }
  /** `over`: what can be read of it says that it has ended. */
  | { damaged: CodedError; over: boolean }
);

/**
 * Where runs are written down: Secrets of the orchestrator's system namespace, so that they are guarded as what they hold is.
 * One Secret has the record, and is written at every turn of a step; plan and before-images are written once, in as many as they need.
 */
export interface Journal {
  /** Newest first. */
  list(): Promise<FoundRun[]>;
  plan(record: RunRecord): Promise<Plan>;
  begin(record: RunRecord, plan: Plan): Promise<void>;
  /** Fails if another process has written since: then the run is theirs. */
  write(record: RunRecord): Promise<void>;
  writeBefore(record: RunRecord, index: number, before: unknown): Promise<void>;
  readBefore(record: RunRecord, index: number): Promise<unknown>;
  /** Removes every run but these, and what is left of runs that were cut off before they began. */
  keepOnly(ids: readonly string[]): Promise<void>;
}

interface Secret extends KubeObject {
  data?: Record<string, string>;
}

export interface JournalOptions {
  client: Client;
  namespace: string;
  /** Ours, as records have it. */
  identity: string;
  tool: string;
  local: LocalCopy;
}

const MANAGED = "app.kubernetes.io/managed-by=vendorctl";
const RUN = "procedures.vendor.io/run";
const PART = "procedures.vendor.io/part";
const SHA256 = "procedures.vendor.io/sha256";
const COUNT = "procedures.vendor.io/parts";

export function openJournal(options: JournalOptions): Journal {
  const { client, namespace, identity, tool, local } = options;
  const nameOf = (run: string, part?: string) => `vendorctl-run-${run}${part === undefined ? "" : `-${part}`}`;

  const secret = (run: string, part: string, data: Record<string, Buffer>, annotations = {}): Secret => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: part === "record" ? nameOf(run) : nameOf(run, part),
      namespace,
      labels: { "app.kubernetes.io/managed-by": "vendorctl", [RUN]: run, [PART]: part },
      annotations,
    },
    type: "Opaque",
    data: Object.fromEntries(Object.entries(data).map(([key, bytes]) => [key, bytes.toString("base64")])),
  });
  const get = (name: string) => client.get<Secret>(SECRETS, { namespace, name }).catch(undefinedIfNotFound);

  /** Written again if a run was cut off right after it: no process has relied on it yet. */
  const put = async (wanted: Secret) => {
    await client.create(SECRETS, wanted).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
      return client.replace(SECRETS, wanted);
    });
  };

  const writePacked = async (run: string, part: string, value: unknown) => {
    const { parts, sha256 } = pack(value);
    for (const [index, bytes] of parts.entries()) {
      const annotations = { [SHA256]: sha256, [COUNT]: String(parts.length) };
      await put(secret(run, `${part}-${index}`, { part: bytes }, annotations));
    }
    local.write(run, part, value);
  };

  /** From the cluster; where that has lost something, from the copy here, if it is whole. */
  const readPacked = async (run: string, part: string): Promise<unknown> => {
    const parts: Buffer[] = [];
    let first: Secret | undefined;
    for (let index = 0; ; index++) {
      const found = await get(nameOf(run, `${part}-${index}`));
      if (found === undefined) break;
      first ??= found;
      parts.push(Buffer.from(found.data?.["part"] ?? "", "base64"));
      if (index + 1 >= Number(first.metadata.annotations?.[COUNT])) break;
    }
    const value = first && unpack({ parts, sha256: first.metadata.annotations?.[SHA256] ?? "" });
    return value === undefined ? local.read(run, part) : value;
  };

  const recordSecret = (record: RunRecord) =>
    secret(record.id, "record", { record: Buffer.from(JSON.stringify(record, null, 1)) });
  let version: string | undefined;

  return {
    list: () => readRecords(options),

    async plan({ id, plan: { hash } }) {
      const plan = (await readPacked(id, "plan")) as Plan | undefined;
      if (plan === undefined) throw errors.JOURNAL_DAMAGED(id, "its plan is missing or altered");
      if (!isUnaltered(plan) || plan.hash !== hash) throw errors.JOURNAL_DAMAGED(id, "its plan was altered");
      return plan;
    },

    async begin(record, plan) {
      await writePacked(record.id, "plan", plan);
      const created = await client.create<Secret>(SECRETS, recordSecret({ ...record, by: identity }));
      version = created.metadata.resourceVersion;
      local.write(record.id, "record", record);
    },

    async write(record) {
      const wanted = recordSecret({ ...record, by: identity, tool });
      for (;;) {
        // The version makes this a compare-and-swap: who was succeeded finds out here, before the next change.
        if (version === undefined) version = (await get(wanted.metadata.name))?.metadata.resourceVersion ?? "";
        if (version === "") throw errors.JOURNAL_DAMAGED(record.id, "its record is missing");
        const metadata = { ...wanted.metadata, resourceVersion: version };
        try {
          const written = await client.replace<Secret>(SECRETS, { ...wanted, metadata });
          version = written.metadata.resourceVersion;
          local.write(record.id, "record", record);
          return;
        } catch (error) {
          if (!isConflict(error)) throw error;
          // Our own write may have arrived though its answer did not.
          const live = await get(wanted.metadata.name);
          const writer = live && found(live, tool);
          if (!writer || !("record" in writer) || writer.record.by !== identity)
            throw errors.RUN_TAKEN_OVER().from(error);
          version = live.metadata.resourceVersion;
        }
      }
    },

    writeBefore: (record, index, before) => writePacked(record.id, `before-${index + 1}`, before),

    async readBefore(record, index) {
      const before = await readPacked(record.id, `before-${index + 1}`);
      if (before === undefined)
        throw errors.JOURNAL_BEFORE_LOST(record.id, record.steps[index]?.id ?? String(index + 1));
      return before;
    },

    async keepOnly(ids) {
      // `notin` also finds what has no such label at all, and that is no part of any run.
      const others = ids.length === 0 ? RUN : `${RUN},${RUN} notin (${ids.join(",")})`;
      await client.deleteCollection(SECRETS, { namespace, labelSelector: `${MANAGED},${others}` });
    },
  };
}

/** Every run, newest first. */
export async function readRecords({
  client,
  namespace,
  tool,
  signal,
}: Pick<JournalOptions, "client" | "namespace" | "tool"> & { signal?: AbortSignal }): Promise<FoundRun[]> {
  const labelSelector = `${MANAGED},${PART}=record`;
  const { items } = await client.list<Secret>(SECRETS, { namespace, labelSelector, ...(signal && { signal }) });
  return items.map((item) => found(item, tool)).sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
}

function found(secret: Secret, tool: string): FoundRun {
  const id = secret.metadata.labels?.[RUN] ?? secret.metadata.name;
  const created = secret.metadata.creationTimestamp ?? "";
  try {
    const record = JSON.parse(Buffer.from(secret.data?.["record"] ?? "", "base64").toString()) as RunRecord;
    const startedAt = record.startedAt ?? created;
    if (isNewer(record, tool)) {
      return { id, startedAt, damaged: errors.JOURNAL_NEWER(id, record.tool), over: !isUnfinished(record) };
    }
    if (!Array.isArray(record.steps) || record.id !== id) throw new TypeError("not a record");
    return { id, startedAt, record };
  } catch (error) {
    const damaged = errors.JOURNAL_DAMAGED(id, "its record cannot be read").from(error);
    return { id, startedAt: created, damaged, over: false };
  }
}

/** A newer tool may mean more by the same words, so what it began is not ours to end. */
function isNewer(record: RunRecord, tool: string): boolean {
  if (record.format !== FORMAT) return true;
  const [theirs, ours] = [parseVersion(record.tool), parseVersion(tool)];
  return theirs !== undefined && ours !== undefined && compareVersions(theirs, ours) > 0;
}
