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
  readonly counted: FlowSum[] = [];

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

  /** Another interval; what was counted up to here is read, as often as one likes, and forgotten. */
  async next(): Promise<FlowSum[]> {
    await this.flows.begin(++this.number);
    const ended = (await this.flows.intervals()).filter((interval) => interval < this.number);
    const sums: FlowSum[] = [];
    for (const interval of ended) {
      sums.push(...(await this.flows.read(interval)));
      await this.flows.forget(interval);
    }
    this.counted.push(...sums);
    return sums;
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
