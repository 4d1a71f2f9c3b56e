import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { FlowAccounting, FlowSum } from "../../src/dataplane/flow-sums.ts";
import { bundleToFile } from "../../tools/build.mjs";
import { Lab } from "./lab.ts";

/** A lab whose data plane counts for flow logs, and what all its lives have counted. */
export class FlowLab extends Lab {
  readonly directory: string;
  private number = 0;
  private readonly counted = new Map<number, FlowSum[]>();

  static async make(): Promise<FlowLab> {
    const thread = pathToFileURL(await bundleToFile("src/dataplane/nft/flows/counter-entry.ts"));
    return new FlowLab(mkdtempSync(join(tmpdir(), "vt-flows-")), thread);
  }

  private constructor(directory: string, thread: URL) {
    super({ flowLogs: { directory, thread } });
    this.directory = directory;
  }

  get flows(): FlowAccounting {
    return this.dataplane.flows!();
  }

  /** Another interval; what was counted up to here is read and forgotten. */
  async next(): Promise<FlowSum[]> {
    await this.flows.begin(++this.number);
    const sums: FlowSum[] = [];
    for (const interval of await this.flows.intervals()) {
      if (interval >= this.number) continue;
      const read = await this.flows.read(interval);
      this.counted.set(interval, read);
      sums.push(...read);
      await this.flows.forget(interval);
    }
    return sums;
  }

  /** Of all intervals and lives; an interval that was read twice, since an agent was killed before it was forgotten, is one. */
  all(): FlowSum[] {
    return [...this.counted.values()].flat();
  }

  override async stop(): Promise<void> {
    await super.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Of the sums a test means. */
export function total(sums: readonly FlowSum[], of: Partial<FlowSum>) {
  const fields = Object.entries(of) as [keyof FlowSum, unknown][];
  const all = { packets: 0, bytes: 0, replyPackets: 0, replyBytes: 0, started: 0, ended: 0 };
  for (const sum of sums) {
    if (fields.some(([field, value]) => sum[field] !== value)) continue;
    for (const field of Object.keys(all) as (keyof typeof all)[]) all[field] += sum[field];
  }
  return all;
}
