import type { EtcdConnection } from "../../../datastore/etcd/etcd-connection.ts";
import { sleep } from "../../../kit/clock.ts";
import type { Work } from "../../action.ts";
import { readEtcd } from "./etcd-objects.ts";
import { layoutOf } from "./layout.ts";

const LOOK_MS = 500;

/** Waits until no object has been written for a while. Who still reads etcd as open when it is locked writes soon, or not at all. */
export async function awaitQuiet(etcd: EtcdConnection, work: Work): Promise<void> {
  const { quietMs } = layoutOf(work.names);
  if (quietMs === 0) return;
  let newest = await newestRevision(etcd, work);
  let since = work.clock.now();
  while (work.clock.now() - since < quietMs) {
    work.waitingFor("writes to etcd that were under way when it was locked");
    await sleep(work.clock, LOOK_MS, work.signal);
    work.signal.throwIfAborted();
    const now = await newestRevision(etcd, work);
    if (now !== newest) since = work.clock.now();
    newest = now;
  }
}

async function newestRevision(etcd: EtcdConnection, { names }: Work): Promise<number> {
  const { objects } = await readEtcd(etcd, names);
  return [...objects.values()].reduce((most, { object }) => Math.max(most, Number(object.metadata.resourceVersion)), 0);
}
