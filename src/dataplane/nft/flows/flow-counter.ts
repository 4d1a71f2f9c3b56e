/** Counts: what the kernel has of connections and of denials, less what was counted already, added to rows. In a thread of its own. */
import {
  ConnectionReader,
  type ConnectionSockets,
  type CountedConnection,
} from "../../../kernel/conntrack/connection-counts.ts";
import { SetReader } from "../../../kernel/nft/set-counts.ts";
import { CONNECTION_MARK } from "../ruleset.ts";
import { ByteTable } from "./byte-table.ts";
import { COUNTS, ConnectionBase } from "./connection-base.ts";
import { DENIED_SETS } from "./denials.ts";
import { type IntervalFile, IntervalFiles, ROW_COUNTS } from "./interval-files.ts";
import { ROW_KINDS, RowKeyWriter } from "./row-key.ts";

/** From so many rows of an interval on, new ones have no ports; from twice as many on, no addresses. */
const MOST_ROWS = 100_000;
/** A table that the kernel resizes is not read whole: only what two sweeps do not see has ended. */
const UNSEEN_SWEEPS = 2;
const ADDRESS = 16;
/** The longest key of a set. */
const ELEMENT_KEY = 48;
const ELEMENT_COUNTS = 2;
const GENERATION_SHIFT = 16;
const ROW = {
  packets: 0,
  bytes: 1,
  replyPackets: 2,
  replyBytes: 3,
  started: 4,
  ended: 5,
  live: 6,
  lastSeen: 7,
} as const;

export interface SweepRequest {
  /** Another number after each change of the model: rows of before keep what they are. */
  epoch: number;
  /** 16 bytes each: of pods and host endpoints of this node. Absent: as before. */
  addresses?: Uint8Array;
  /** Whether a rule asks for the port of who opened a connection. */
  asksSourcePorts: boolean;
  /** What is there now was counted, or is not to be: nothing is added. */
  onlyBase: boolean;
}

export interface Swept {
  /** Keys of rows that are new, in order. */
  fresh: Uint8Array;
  /** Connections in the kernel's table that are counted. */
  connections: number;
  merged: number;
  unattributed: number;
}

export class FlowCounter {
  private readonly reader: ConnectionReader;
  private readonly sets: SetReader;
  private readonly files: IntervalFiles;
  private readonly table: string;
  private readonly base = new ConnectionBase();
  /** Connections that ended since the sweep began: what it read of them is older than what was counted last. */
  private readonly endedNow = new ConnectionBase();
  private readonly addresses = new ByteTable(ADDRESS);
  private readonly rows = new ByteTable(new RowKeyWriter().bytes.length);
  private readonly key = new RowKeyWriter();
  private counts = new Float64Array(1_024 * ROW_COUNTS);
  private texts: string[] = [];
  private elements = new ByteTable(ELEMENT_KEY);
  private elementCounts = new Float64Array(1_024 * ELEMENT_COUNTS);
  private request: SweepRequest = { epoch: -1, asksSourcePorts: false, onlyBase: true };
  private interval: number | undefined;
  private sweep = 0;
  private sweeping = false;
  /** Between a sweep and its commit rows have no text, so nothing else may add to them. */
  private uncommitted = false;
  private epochs = 0;
  /** The sweep before which the kernel had to drop events last. */
  private lostAt = Number.NEGATIVE_INFINITY;
  private merged = 0;
  private unattributed = 0;

  constructor(sockets: ConnectionSockets, { directory, table }: { directory: string; table: string }) {
    this.reader = new ConnectionReader(sockets);
    this.sets = new SetReader(sockets.dump);
    this.files = new IntervalFiles(directory);
    this.table = table;
  }

  /** Goes on from where an earlier life was; false: there was none. */
  load(): boolean {
    const newest = this.files.list().at(-1);
    const file = newest === undefined ? undefined : this.files.read(newest);
    if (!file) return false;
    this.base.read(Buffer.from(file.connections), this.sweep);
    this.readElements(file.elements);
    return true;
  }

  /** Reads everything once. */
  read(request: SweepRequest): Swept {
    if (request.epoch !== this.request.epoch) {
      this.rows.forgetKeys();
      this.epochs++;
    }
    this.request = { ...request };
    if (request.addresses) this.setAddresses(request.addresses);
    this.sweep++;
    for (let row = 0; row < this.rows.size; row++) this.counts[row * ROW_COUNTS + ROW.live] = 0;
    this.readEvents();
    this.sweeping = true;
    try {
      // An event that came before a piece is about a connection of before, which may have the number of one in the piece.
      this.reader.all(
        (connection) => this.onEntry(connection),
        () => this.readEvents(),
      );
    } finally {
      this.sweeping = false;
      this.endedNow.clear();
    }
    this.endUnseen();
    this.readDenials();
    this.request.onlyBase = false;
    this.uncommitted = true;
    return {
      fresh: this.rows.keysFrom(this.texts.length),
      connections: this.base.size,
      merged: this.merged,
      unattributed: this.unattributed,
    };
  }

  /** `texts` of the rows that were fresh. From here on a killed agent misses nothing of the sweep. What is counted after it is `next`'s, if given. */
  commit(texts: readonly string[], next?: number): void {
    for (const text of texts) this.texts.push(text);
    this.uncommitted = false;
    if (this.interval !== undefined) this.files.write(this.file(this.interval));
    if (next !== undefined && next !== this.interval) this.begin(next);
  }

  private begin(interval: number): void {
    const continued = this.interval === undefined ? this.files.read(interval) : undefined;
    const keep = this.epochs <= 1 && this.rows.size < MOST_ROWS && this.interval !== undefined;
    if (keep) this.counts.fill(0);
    else this.dropRows();
    if (continued && !continued.forgotten) this.addRows(continued);
    this.interval = interval;
    this.files.write(this.file(interval));
  }

  /** Connections that ended, also between sweeps: the kernel keeps only so many events. */
  readEvents(): void {
    if (this.uncommitted || this.sweep === 0) return;
    if (!this.reader.ended((connection) => this.onEnded(connection))) this.lostAt = this.sweep;
  }

  private dropRows(): void {
    this.rows.clear();
    this.texts = [];
    this.counts.fill(0);
    this.epochs = 0;
  }

  /** Rows of the same interval from an earlier life: their texts are enough, no key leads to them. */
  private addRows({ texts, counts }: IntervalFile): void {
    const key = new Uint8Array(this.key.bytes.length);
    const view = new DataView(key.buffer);
    for (const [index, text] of texts.entries()) {
      view.setUint32(0, index);
      const row = this.newRow(key);
      this.texts.push(text);
      this.counts.set(counts.subarray(index * ROW_COUNTS, (index + 1) * ROW_COUNTS), row * ROW_COUNTS);
    }
    this.rows.forgetKeys();
  }

  private setAddresses(bytes: Uint8Array): void {
    this.addresses.clear();
    for (let at = 0; at < bytes.length; at += ADDRESS) this.addresses.put(bytes.subarray(at, at + ADDRESS));
  }

  private isOurs({ source, destination }: CountedConnection): boolean {
    return this.addresses.find(source) >= 0 || this.addresses.find(destination) >= 0;
  }

  private onEntry(connection: CountedConnection): void {
    if (!this.isOurs(connection)) return;
    const { id, hash } = connection;
    if (this.endedNow.size > 0 && this.endedNow.find(id, hash) >= 0) return;
    const slot = this.base.find(id, hash);
    if (slot >= 0) this.base.see(slot, this.sweep);
    if (this.request.onlyBase) {
      this.keep(slot >= 0 ? slot : this.base.add(id, hash, this.sweep), connection);
      return;
    }
    const row = this.add(slot, connection);
    this.keep(slot >= 0 ? slot : this.base.add(id, hash, this.sweep), connection);
    if (row >= 0 && !connection.closed) this.counts[row * ROW_COUNTS + ROW.live]! += 1;
  }

  private onEnded(connection: CountedConnection): void {
    const { id, hash } = connection;
    const slot = this.base.find(id, hash);
    if (slot < 0 && !this.isOurs(connection)) return;
    if (!this.request.onlyBase) this.add(slot, connection, true);
    if (slot >= 0) this.base.remove(slot);
    if (this.sweeping && this.endedNow.find(id, hash) < 0) this.endedNow.add(id, hash, 0);
  }

  /** What is new of a connection. Gives its row; -1 where there was nothing to add, and none has its key. */
  private add(slot: number, connection: CountedConnection, isGone = false): number {
    const { packets, bytes, replyPackets, replyBytes, mark, closed } = connection;
    const { counts } = this.base;
    const at = slot * COUNTS;
    // Fewer than before: another connection with the number of one whose end was not reported.
    const isSame =
      slot >= 0 &&
      packets >= counts[at]! &&
      bytes >= counts[at + 1]! &&
      replyPackets >= counts[at + 2]! &&
      replyBytes >= counts[at + 3]!;
    const before = (index: number) => (isSame ? counts[at + index]! : 0);
    const more = packets + replyPackets - before(0) - before(2);
    const isExported = mark >>> GENERATION_SHIFT !== 0;
    // A sweep follows when policy ends connections: what that one finds was carried before.
    const hadEnded = isSame ? counts[at + 4] === 1 : isExported;
    const isEnded = (mark & CONNECTION_MARK.denied) !== 0 && hadEnded;
    const key = this.keyOf(connection, isEnded ? ROW_KINDS.ended : ROW_KINDS.allowed);
    const wasEnded = slot >= 0 && counts[at + 5] === 1;
    const ends = (closed || isGone) && !(isSame && wasEnded);
    // An idle connection makes no row, but is live in the one its others made.
    if (more === 0 && isSame && !ends) return this.rows.find(key);
    const row = this.rowOf(key);
    const into = row * ROW_COUNTS;
    this.counts[into + ROW.packets]! += packets - before(0);
    this.counts[into + ROW.bytes]! += bytes - before(1);
    this.counts[into + ROW.replyPackets]! += replyPackets - before(2);
    this.counts[into + ROW.replyBytes]! += replyBytes - before(3);
    if (more > 0) this.counts[into + ROW.lastSeen] = Date.now();
    // One that the other data plane exported began long ago: the upper half of its mark says which export it came with.
    if (!isSame && !isExported) this.counts[into + ROW.started]! += 1;
    if (!isSame && slot >= 0 && !wasEnded) this.counts[into + ROW.ended]! += 1;
    if (ends) this.counts[into + ROW.ended]! += 1;
    return row;
  }

  private keep(slot: number, connection: CountedConnection): void {
    const { packets, bytes, replyPackets, replyBytes, mark, closed } = connection;
    const { counts } = this.base;
    const at = slot * COUNTS;
    counts[at] = packets;
    counts[at + 1] = bytes;
    counts[at + 2] = replyPackets;
    counts[at + 3] = replyBytes;
    counts[at + 4] = (mark & CONNECTION_MARK.denied) === 0 ? 0 : 1;
    counts[at + 5] = closed ? 1 : 0;
  }

  private keyOf(connection: CountedConnection, kind: number): Uint8Array {
    const { sourcePort, destinationPort, askedPort, protocol } = connection;
    const ports = { sourcePort: this.request.asksSourcePorts ? sourcePort : 0, destinationPort, askedPort };
    return this.key.write(connection, ports, protocol, kind, 0);
  }

  /** Of the key written last. */
  private rowOf(key: Uint8Array): number {
    const known = this.rows.find(key);
    if (known >= 0) return known;
    if (this.rows.size < MOST_ROWS) return this.newRow(key);
    this.merged++;
    for (const [how, most] of [
      ["ports", MOST_ROWS * 2],
      ["addresses", Number.POSITIVE_INFINITY],
    ] as const) {
      const coarser = this.key.coarser(how);
      const there = this.rows.find(coarser);
      if (there >= 0) return there;
      if (this.rows.size < most) return this.newRow(coarser);
    }
    return this.newRow(key);
  }

  private newRow(key: Uint8Array): number {
    const row = this.rows.put(key);
    if ((row + 1) * ROW_COUNTS > this.counts.length) {
      const longer = new Float64Array(this.counts.length * 2);
      longer.set(this.counts);
      this.counts = longer;
    }
    this.counts.fill(0, row * ROW_COUNTS, (row + 1) * ROW_COUNTS);
    return row;
  }

  /** Entries that are gone and whose end was not reported: they were made before this agent listened, or events were lost. */
  private endUnseen(): void {
    const before = this.base.size;
    this.base.removeUnseen(this.sweep - UNSEEN_SWEEPS + 1);
    // What each had counted after it was read last is not known: at least a packet may be absent.
    if (this.sweep - this.lostAt <= UNSEEN_SWEEPS + 1) this.unattributed += before - this.base.size;
  }

  private readDenials(): void {
    const seen = new ByteTable(ELEMENT_KEY);
    const key = new Uint8Array(ELEMENT_KEY);
    const counts: number[] = [];
    let whole = true;
    for (const [set, { name, family, ports }] of DENIED_SETS.entries()) {
      const read = this.sets.elements(this.table, name, (bytes, packets, octets) => {
        key.fill(0);
        key.set(bytes);
        key[ELEMENT_KEY - 1] = set;
        const number = this.elements.find(key);
        const [before, beforeBytes] =
          number < 0 ? [0, 0] : [this.elementCounts[number * 2]!, this.elementCounts[number * 2 + 1]!];
        // Fewer than before: it expired, and another came.
        const isSame = packets >= before && octets >= beforeBytes;
        const index = seen.put(key);
        counts[index * 2] = packets;
        counts[index * 2 + 1] = octets;
        const more = packets - (isSame ? before : 0);
        if (more > 0 && !this.request.onlyBase) {
          const row = this.rowOf(this.deniedKey(bytes, family, ports));
          this.counts[row * ROW_COUNTS + ROW.packets]! += more;
          this.counts[row * ROW_COUNTS + ROW.bytes]! += octets - (isSame ? beforeBytes : 0);
          this.counts[row * ROW_COUNTS + ROW.lastSeen] = Date.now();
        }
      });
      whole &&= read;
    }
    if (whole) {
      this.elements = seen;
      this.elementCounts = Float64Array.from(counts);
      return;
    }
    // What was not read is still there, and was counted before.
    for (let index = 0; index < seen.size; index++) this.keepElement(seen.keysFrom(index, index + 1), counts, index);
  }

  private keepElement(key: Uint8Array, counts: readonly number[], index: number): void {
    const number = this.elements.put(key);
    if ((number + 1) * ELEMENT_COUNTS > this.elementCounts.length) {
      const longer = new Float64Array(Math.max(1_024, this.elementCounts.length * 2));
      longer.set(this.elementCounts);
      this.elementCounts = longer;
    }
    this.elementCounts[number * 2] = counts[index * 2]!;
    this.elementCounts[number * 2 + 1] = counts[index * 2 + 1]!;
  }

  private deniedKey(bytes: Uint8Array, family: 4 | 6 | undefined, hasPorts: boolean): Uint8Array {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const size = family === undefined ? 0 : family === 4 ? 4 : ADDRESS;
    const address = (index: number) => {
      const into = new Uint8Array(ADDRESS);
      if (size === 0) return into;
      if (family === 4) into[10] = into[11] = 0xff;
      into.set(bytes.subarray(index * size, (index + 1) * size), ADDRESS - size);
      return into;
    };
    // Parts of a key begin at multiples of four bytes.
    let at = size * 2;
    const protocol = family === undefined ? 0 : bytes[at]!;
    if (family !== undefined) at += 4;
    const destinationPort = hasPorts ? view.getUint16(at) : 0;
    if (hasPorts) at += 4;
    const ends = { source: address(0), destination: address(1), asked: new Uint8Array(ADDRESS) };
    const ports = { sourcePort: 0, destinationPort, askedPort: 0 };
    const key = this.key.write(ends, ports, protocol, ROW_KINDS.dropped, view.getUint32(at, true));
    return family === undefined ? this.key.coarser("addresses") : key;
  }

  private file(interval: number): IntervalFile {
    const rows: number[] = [];
    for (let row = 0; row < this.texts.length; row++) if (this.hasCounts(row)) rows.push(row);
    const counts = new Float64Array(rows.length * ROW_COUNTS);
    for (const [index, row] of rows.entries()) {
      counts.set(this.counts.subarray(row * ROW_COUNTS, (row + 1) * ROW_COUNTS), index * ROW_COUNTS);
    }
    return {
      ...{ interval, forgotten: false, counts, texts: rows.map((row) => this.texts[row]!) },
      connections: this.base.bytes(),
      elements: this.elementBytes(),
    };
  }

  /** Live ones alone make no sum. */
  private hasCounts(row: number): boolean {
    const at = row * ROW_COUNTS;
    return [ROW.packets, ROW.replyPackets, ROW.started, ROW.ended].some((which) => this.counts[at + which]! > 0);
  }

  private elementBytes(): Uint8Array {
    const { size } = this.elements;
    const numbers = this.elementCounts.slice(0, size * ELEMENT_COUNTS);
    return Buffer.concat([this.elements.keysFrom(0), Buffer.from(numbers.buffer)]);
  }

  private readElements(given: Uint8Array): void {
    const bytes = Buffer.from(given);
    const size = bytes.length / (ELEMENT_KEY + ELEMENT_COUNTS * 8);
    this.elementCounts = new Float64Array(Math.max(1, size) * ELEMENT_COUNTS);
    for (let index = 0; index < size; index++) {
      this.elements.put(bytes.subarray(index * ELEMENT_KEY, (index + 1) * ELEMENT_KEY));
      for (let at = 0; at < ELEMENT_COUNTS; at++) {
        const from = size * ELEMENT_KEY + (index * ELEMENT_COUNTS + at) * 8;
        this.elementCounts[index * ELEMENT_COUNTS + at] = bytes.readDoubleLE(from);
      }
    }
  }
}
