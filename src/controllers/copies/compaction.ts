import type { EtcdConnection } from "../../datastore/etcd/etcd-connection.ts";
import { readPage } from "../../datastore/etcd/etcd-keys.ts";
import { durationMs } from "../../kit/duration.ts";
import type { ControllerContext } from "../controller-context.ts";
import { every } from "../every.ts";

/** While compaction is off, how often the setting is looked at. */
const OFF_MS = 60_000;

/** Drops the history of etcd that is older than a period: etcd keeps all of it, until its database is full. Returns the function that ends it. */
export function compactEtcd({ settings, clock, log }: ControllerContext, etcd: EtcdConnection): () => void {
  let before = 0;
  const periodMs = () => durationMs(settings.latest()?.etcdV3CompactionPeriod ?? "0s");
  const compact = async () => {
    if (periodMs() === 0) {
      before = 0;
      return;
    }
    const { revision } = await readPage(etcd, "/", { limit: 1 });
    if (before > 0 && before < revision) await etcd.write("/etcdserverpb.KV/Compact", { revision: before });
    before = revision;
  };
  return every(
    clock,
    () => periodMs() || OFF_MS,
    () => void compact().catch((error: unknown) => log.warn({ error }, "etcd was not compacted")),
  );
}
