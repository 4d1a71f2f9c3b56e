import type { EtcdConnection } from "../../../datastore/etcd/etcd-connection.ts";
import { sleep } from "../../../kit/clock.ts";
import type { Work } from "../../action.ts";
import { errors } from "../../actions/errors.ts";
import { layoutOf } from "./layout.ts";

/** etcd is asked again this often: what is waited for is written by another program, and seen by comparing two systems. */
const LOOK_MS = 500;

/**
 * Waits until agents that read etcd would see the pods, namespaces and policies there are now. What changes between two looks is not waited for:
 * in a large cluster some pod always changes, and its copy follows.
 */
export async function awaitCopies(etcd: EtcdConnection, work: Work): Promise<void> {
  const began = work.clock.now();
  const { outdatedCopies } = layoutOf(work.names);
  let before = await outdatedCopies(etcd, work);
  while (before.size > 0) {
    work.waitingFor(`${work.names.workloads.kubeControllers} to copy ${before.size} objects to etcd`);
    if (work.stallMs !== undefined && work.clock.now() - began > work.stallMs) {
      throw errors.STEP_STALLED("copies in etcd", Math.round(work.stallMs / 60_000));
    }
    await sleep(work.clock, LOOK_MS, work.signal);
    work.signal.throwIfAborted();
    const now = await outdatedCopies(etcd, work);
    before = new Map([...now].filter(([key, version]) => before.get(key) === version));
  }
}
