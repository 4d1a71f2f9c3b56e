import type { ApplyReport, Dataplane, SweepReport, Table, TableName } from "../dataplane/contract.ts";
import type { Log } from "../kit/log.ts";
import type { ModelDelta } from "../policy/model.ts";
import { ModelCopy } from "../policy/model-copy.ts";
import { emptyDelta, wholeDelta } from "./model-delta.ts";

export type PlaneKind = Dataplane["kind"];

/** Opens a data plane; says why it cannot where it cannot. */
export type OpenPlane = () => Promise<Dataplane>;

/**
 * The two data planes as one, of which the configured one filters. A change is never a moment without policy: the new one is programmed
 * whole and acts beside the old one, both asking each packet, and only then the old one's filter goes. Where the new one cannot be
 * programmed, the old one stays and it is tried again.
 */
export interface PlaneSwitch {
  apply(delta: ModelDelta): Promise<ApplyReport>;
  resync(): Promise<void>;
  sweep(): Promise<SweepReport>;
  show(table: TableName): Promise<Table>;
  /** The one that filters now; undefined before the first delta in sync. */
  acting(): PlaneKind | undefined;
  close(): Promise<void>;
}

export interface PlaneSwitchOptions {
  open: Record<PlaneKind, OpenPlane>;
  /** Why eBPF cannot act on this node; undefined: it can. */
  refusal: string | undefined;
  log: Log;
}

export function planeSwitch({ open, refusal, log }: PlaneSwitchOptions): PlaneSwitch {
  const model = new ModelCopy();
  let plane: Dataplane | undefined;
  let inEffect = false;

  const wanted = (): PlaneKind => (model.settings.dataplane === "ebpf" && refusal === undefined ? "ebpf" : "nft");

  const change = async (kind: PlaneKind): Promise<ApplyReport | undefined> => {
    const old = plane;
    log.info({ from: old?.kind, to: kind }, "changing the data plane");
    let fresh: Dataplane | undefined;
    try {
      fresh = await open[kind]();
      const report = await fresh.apply(wholeDelta(model, true));
      const failed = report.objects.find(({ kind: what, failed }) => failed && what === "endpoint");
      if (failed) throw failed.failed;
      plane = fresh;
      await old?.remove();
      await old?.close();
      log.info({ dataplane: kind }, "the data plane acts");
      return report;
    } catch (error) {
      if (plane === fresh) throw error;
      log.error({ dataplane: kind, error }, "the data plane could not be changed; the old one goes on");
      await fresh?.remove().catch(() => {});
      await fresh?.close().catch(() => {});
      return undefined;
    }
  };

  return {
    async apply(delta) {
      model.apply(delta);
      // Which plane is wanted is only known once everything is: until then what an earlier life left goes on.
      if (!model.inSync) return { objects: [] };
      if (!plane) {
        plane = await open[wanted()]();
        const report = await plane.apply(wholeDelta(model, true));
        inEffect = true;
        return report;
      }
      const here = await plane.apply(delta);
      if (plane.kind === wanted()) return here;
      return (await change(wanted())) ?? here;
    },
    async resync() {
      await plane?.resync();
      if (plane) await plane.apply(emptyDelta(model.inSync));
    },
    async sweep() {
      if (!plane) return { removed: [] };
      const report = await plane.sweep();
      // An earlier life may have been stopped in the middle of a change.
      const other: PlaneKind = plane.kind === "nft" ? "ebpf" : "nft";
      const left = await removeOther(open[other], log);
      return { removed: [...report.removed, ...left] };
    },
    show: async (table) => (plane ? await plane.show(table) : { columns: [], rows: [] }),
    acting: () => (inEffect ? plane?.kind : undefined),
    async close() {
      await plane?.close();
    },
  };
}

async function removeOther(open: OpenPlane, log: Log): Promise<string[]> {
  try {
    const other = await open();
    await other.remove();
    await other.close();
    return [];
  } catch (error) {
    // A plane this kernel cannot run has left nothing here either.
    log.debug({ error }, "the other data plane has nothing to remove");
    return [];
  }
}
