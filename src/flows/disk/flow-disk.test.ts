import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FlowBatch, FlowKey } from "../../api/protocol/flow.ts";
import { writeBatch } from "../../api/protocol/flow-wire.ts";
import { silentLog } from "../../kit/log.ts";
import { flowBatch, flowRow, outside, policyHit } from "../flow.fixture.ts";
import { FlowDisk, type FlowDiskOptions } from "./flow-disk.ts";
import { writeParquet } from "./parquet-file.ts";

const HOUR = 3_600_000;
const BEGIN = Date.parse("2026-11-19T17:30:00Z");

/** Allowed from outside; a staged policy would deny it. */
const STAGED: Partial<FlowKey> = {
  ...{ from: outside, verdict: "Allow", policies: [] },
  pending: { verdict: "Deny", policies: [policyHit({ staged: true })] },
};

describe("flows on disk", () => {
  let directory: string;
  let now: number;
  const opened: FlowDisk[] = [];
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "flow-disk-"));
    now = BEGIN;
  });
  afterEach(async () => {
    for (const disk of opened.splice(0)) await disk.close();
    rmSync(directory, { recursive: true });
  });

  const clock = { now: () => now, setTimeout: () => () => {} };
  const open = async (some: Partial<FlowDiskOptions> = {}) => {
    const disk = await FlowDisk.open({
      ...{ directory, days: 7, bytes: 2 ** 30, historyMs: HOUR, write: writeParquet, clock, log: silentLog },
      ...some,
    });
    opened.push(disk);
    return disk;
  };
  const keep = (disk: FlowDisk, batch: FlowBatch) => disk.keep(batch, writeBatch(batch, batch.until));
  const restored = async (disk: FlowDisk) => {
    const batches: { batch: FlowBatch; arrived: number }[] = [];
    await disk.restore((batch, arrived) => batches.push({ batch, arrived }));
    return batches;
  };
  const intervals = async (disk: FlowDisk) => (await restored(disk)).map(({ batch }) => batch.interval);
  const batchOf = (interval: number, rows = [flowRow()]) =>
    flowBatch(rows, { interval, since: now - 15_000, until: now });
  const parquet = (path: string) => join(directory, "parquet", path);
  const rowsOf = async (path: string) => parquetReadObjects({ file: await asyncBufferFromFile(parquet(path)) });
  const logs = () => readdirSync(join(directory, "batches"));

  it("are there again after a start, as they were and when they came", async () => {
    const first = await open();
    const batch = batchOf(1, [flowRow(), flowRow(STAGED, { packets: 7 })]);
    await keep(first, batch);
    now += 15_000;
    await Promise.all([2, 3, 4].map((interval) => keep(first, batchOf(interval))));
    const again = await restored(await open());
    expect(again.map(({ batch: { interval }, arrived }) => [interval, arrived - BEGIN])).toEqual([
      [1, 0],
      [2, 15_000],
      [3, 15_000],
      [4, 15_000],
    ]);
    expect(again[0]?.batch).toMatchObject(batch);
  });

  it("go on after what was cut off by a power cut", async () => {
    const first = await open();
    await keep(first, batchOf(1));
    await keep(first, batchOf(2));
    const [file] = logs();
    const path = join(directory, "batches", file as string);
    truncateSync(path, statSync(path).size - 5);
    const second = await open();
    expect(await intervals(second)).toEqual([1]);
    await keep(second, batchOf(3));
    expect(await intervals(await open())).toEqual([1, 3]);
  });

  it("say nothing of a record whose bytes have changed, nor of what follows", async () => {
    const first = await open();
    for (const interval of [1, 2, 3]) await keep(first, batchOf(interval));
    const path = join(directory, "batches", logs()[0] as string);
    const bytes = readFileSync(path);
    bytes[Math.floor(bytes.length / 2)]! ^= 1;
    writeFileSync(path, bytes);
    expect(await intervals(await open())).toEqual([1]);
  });

  it("have a batch once that is sent again while it is written", async () => {
    const disk = await open();
    await Promise.all([1, 1, 1].map((interval) => keep(disk, batchOf(interval))));
    expect(await intervals(disk)).toEqual([1]);
  });

  it("of an hour that is over are a Parquet file, and batches go when memory has forgotten them", async () => {
    const disk = await open();
    await keep(disk, batchOf(1, [flowRow(), flowRow(STAGED, { packets: 7 })]));
    now = BEGIN + HOUR;
    await keep(disk, batchOf(2));
    await disk.lookAfter();
    const [denied, allowed, ...others] = await rowsOf("day=2026-11-19/17.parquet");
    expect(others).toEqual([]);
    expect(denied).toEqual({
      ...{ start: new Date(BEGIN - 15_000), end: new Date(BEGIN), node: "node-1", boot: "boot-1", interval: 1n },
      ...{ data_plane: "BPF", reporter: "Destination", verdict: "Deny", reason: "policy_ingress" },
      ...{ protocol: "TCP", port: 5432 },
      ...{ source_type: "Workload", source_namespace: "shop", source_name: "web", source_kind: "Deployment" },
      ...{ source_labels: '{"app":"web"}', source_addresses: ["10.244.1.7"] },
      ...{ destination_type: "Workload", destination_namespace: "pay", destination_name: "db" },
      ...{ destination_kind: "Deployment", destination_labels: '{"app":"db"}', destination_addresses: ["10.244.2.9"] },
      ...{ service_namespace: "pay", service_name: "database", service_port: "sql" },
      policies: JSON.stringify(flowRow().key.policies),
      ...{ pending_verdict: null, pending_policies: null },
      ...{ packets: 3n, bytes: 180n, reply_packets: 0n, reply_bytes: 0n, started: 3n, ended: 0n, live: 0n },
    });
    expect(allowed).toMatchObject({
      packets: 7n,
      source_type: "Outside",
      source_labels: "{}",
      policies: "[]",
      pending_verdict: "Deny",
    });
    expect(allowed!["source_kind"] ?? null).toBeNull();
    expect(logs()).toEqual(["2026-11-19T17.batches", "2026-11-19T18.batches"]);
    now = BEGIN + 2 * HOUR;
    await disk.lookAfter();
    expect(logs()).toEqual(["2026-11-19T18.batches"]);
    expect(disk.state()).toMatchObject({ since: "2026-11-19T17:00:00Z", failure: undefined });
  });

  it("are written again as a file when more of that hour came, and after a life that ended in the middle", async () => {
    const disk = await open();
    await keep(disk, batchOf(1));
    now = BEGIN + HOUR;
    await disk.lookAfter();
    now = BEGIN;
    await keep(disk, batchOf(2));
    writeFileSync(parquet("day=2026-11-19/17.parquet.new"), "half");
    now = BEGIN + HOUR;
    await disk.lookAfter();
    expect((await rowsOf("day=2026-11-19/17.parquet")).map(({ interval }) => interval)).toEqual([1n, 2n]);
    await disk.lookAfter();
    expect(readdirSync(parquet("day=2026-11-19"))).toEqual(["17.parquet"]);
  });

  it("are forgotten after so many days, and the oldest when they take too much", async () => {
    const disk = await open({ days: 1 });
    for (let hour = 0; hour < 30; hour++) {
      await keep(disk, batchOf(hour + 1));
      now += HOUR;
    }
    await disk.lookAfter();
    expect(disk.state().since).toBe("2026-11-19T23:00:00Z");
    const { bytes } = disk.state();
    await (await open({ days: 1, bytes: bytes / 2 })).lookAfter();
    const small = await open({ days: 1, bytes: bytes / 2 });
    await small.lookAfter();
    expect(small.state().bytes).toBeLessThanOrEqual(bytes / 2);
    expect(small.state().since! > "2026-11-20T01").toBe(true);
  });

  it("that cannot be written are not acknowledged, and that is told until they can be", async () => {
    const disk = await open();
    await keep(disk, batchOf(1));
    rmSync(join(directory, "batches"), { recursive: true });
    writeFileSync(join(directory, "batches"), "in the way");
    now += HOUR;
    await expect(keep(disk, batchOf(2))).rejects.toThrow(/batches/);
    expect(disk.state().failure).toMatchObject({ since: now });
    rmSync(join(directory, "batches"));
    await keep(disk, batchOf(2));
    expect(disk.state().failure).toBeUndefined();
    expect(await intervals(await open())).toEqual([2]);
  });

  it("have to have a directory", async () => {
    writeFileSync(join(directory, "file"), "");
    await expect(open({ directory: join(directory, "file") })).rejects.toMatchObject({ code: "FLOWS_DISK_BAD" });
  });
});
