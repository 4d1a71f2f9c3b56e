import { CodedError } from "../../kit/errors.ts";
import { type EtcdConnection, isPastOrFuture } from "./etcd-connection.ts";
import { COMPARE_MOD_REVISION } from "./etcd-messages.ts";

export interface EtcdValue {
  key: string;
  value: string;
  /** Of the last change; what optimistic writes compare. */
  revision: number;
}

export interface EtcdPage {
  values: EtcdValue[];
  /** That of the whole store: where a watch goes on. */
  revision: number;
  cluster: number;
  more: boolean;
}

/** What happened after the revision asked for is no longer kept, or it is one this etcd never had. */
export class RevisionGone extends Error {}

export const ABSENT = 0;
const PAGE = 500;

export async function readKey(etcd: EtcdConnection, key: string): Promise<EtcdValue | undefined> {
  const { kvs } = await etcd.read("/etcdserverpb.KV/Range", { key: Buffer.from(key) });
  return kvs.map(etcdValue)[0];
}

/** Values of a folder in the order of their keys, after a key, as they were at a revision (0: now). */
export async function readPage(
  etcd: EtcdConnection,
  folder: string,
  { after, revision = 0, limit = PAGE }: { after?: string; revision?: number; limit?: number } = {},
): Promise<EtcdPage> {
  const key = Buffer.from(after === undefined ? folder : `${after}\0`);
  try {
    const answer = await etcd.read("/etcdserverpb.KV/Range", { key, range_end: endOf(folder), limit, revision });
    const { revision: now = 0, cluster_id: cluster = 0 } = answer.header ?? {};
    return { values: answer.kvs.map(etcdValue), revision: revision || now, cluster, more: answer.more };
  } catch (error) {
    throw isPastOrFuture(error) ? new RevisionGone((error as Error).message) : error;
  }
}

/** All of a folder, page by page, as of the first page's revision. */
export async function readFolder(etcd: EtcdConnection, folder: string): Promise<EtcdPage> {
  const values: EtcdValue[] = [];
  let page = await readPage(etcd, folder);
  const { revision } = page;
  for (;;) {
    values.push(...page.values);
    if (!page.more) return { ...page, values, revision };
    page = await readPage(etcd, folder, { after: values.at(-1)?.key ?? "", revision });
  }
}

/** A key that must still be at a revision. */
interface Condition {
  key: string;
  revision: number;
}

/** Writes if the key is still at this revision, and so is what else is asked for; the new revision, or undefined where one is not. */
export async function writeKey(
  etcd: EtcdConnection,
  key: string,
  value: string,
  expect: number,
  also?: Condition,
): Promise<number | undefined> {
  const change = { request_put: { key: Buffer.from(key), value: Buffer.from(value) } };
  return await swap(etcd, [{ key, revision: expect }, ...(also ? [also] : [])], change);
}

export async function deleteKey(
  etcd: EtcdConnection,
  key: string,
  expect: number,
  also?: Condition,
): Promise<number | undefined> {
  const change = { request_delete_range: { key: Buffer.from(key) } };
  return await swap(etcd, [{ key, revision: expect }, ...(also ? [also] : [])], change);
}

async function swap(
  etcd: EtcdConnection,
  conditions: readonly Condition[],
  change: object,
): Promise<number | undefined> {
  const compare = conditions.map(({ key, revision }) => ({
    target: COMPARE_MOD_REVISION,
    key: Buffer.from(key),
    mod_revision: revision,
  }));
  const { succeeded, header } = await etcd.write("/etcdserverpb.KV/Txn", { compare, success: [change] });
  return succeeded ? header?.revision : undefined;
}

/** The first key after all that begin with this. */
export function endOf(folder: string): Buffer {
  const end = Buffer.from(folder);
  end[end.length - 1]! += 1;
  return end;
}

export function etcdValue(kv: { key?: Buffer; value?: Buffer; mod_revision?: number }): EtcdValue {
  return { key: String(kv.key ?? ""), value: String(kv.value ?? ""), revision: kv.mod_revision ?? 0 };
}

/** Numbers of what is wrong with any member (1: no space); none where this user may not ask. */
export async function readAlarms(etcd: EtcdConnection): Promise<number[]> {
  try {
    const { alarms } = await etcd.read("/etcdserverpb.Maintenance/Alarm", {});
    return alarms.map(({ alarm = 0 }) => alarm);
  } catch (error) {
    if (error instanceof CodedError && error.code === "ETCD_REFUSED") return [];
    throw error;
  }
}
