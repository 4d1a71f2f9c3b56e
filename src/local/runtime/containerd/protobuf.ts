/** Protocol buffers as far as the runtime interface needs them: a message is a table of numbered fields, and the tables give the types. */
export interface Field<T> {
  readonly number: number;
  /** Appends the value with its key. */
  write(value: T, out: number[][]): void;
  /** Takes one occurrence of the field: what was known of it before, and a number or bytes. */
  read(before: T | undefined, wire: bigint | Buffer): T;
  /** What a field that is not sent means; none for messages. */
  readonly absent: T;
}

export type Table = Readonly<Record<string, Field<unknown>>>;
/** What can be sent: every field may be left out. */
export type Sent<T extends Table> = { [K in keyof T]?: Value<T[K]> | undefined };
/** What is received: every field is there, if only by its default. */
export type Received<T extends Table> = { [K in keyof T]: Value<T[K]> };
type Value<F> = F extends Field<infer T> ? T : never;

const VARINT = 0;
const BYTES = 2;
const FIXED: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

export const text = (number: number): Field<string> =>
  bytesField(
    number,
    "",
    (value) => Buffer.from(value),
    (bytes) => bytes.toString(),
  );

export const bytes = (number: number): Field<Buffer> =>
  bytesField<Buffer>(
    number,
    Buffer.alloc(0),
    (value) => value,
    (read) => read,
  );

/** Of any width and any enumeration: a negative number is sent as 64 bits. */
export const int = (number: number): Field<number> => ({
  number,
  absent: 0,
  write: (value, out) => {
    if (value !== 0) out.push(key(number, VARINT), varint(BigInt(value)));
  },
  read: (_, wire) => Number(BigInt.asIntN(64, wire as bigint)),
});

export const flag = (number: number): Field<boolean> => ({
  number,
  absent: false,
  write: (value, out) => {
    if (value) out.push(key(number, VARINT), [1]);
  },
  read: (_, wire) => wire !== 0n,
});

/** A message within another. One that is empty is sent too: that it is there means something. */
export function message<T extends Table>(number: number, table: T): Field<Sent<T> | undefined> {
  return {
    number,
    absent: undefined,
    write: (value, out) => {
      if (value !== undefined) pushBytes(number, encode(table, value), out);
    },
    read: (_, wire) => decode(table, wire as Buffer),
  };
}

export function many<T>(one: Field<T>): Field<readonly NonNullable<T>[]> {
  return {
    number: one.number,
    absent: [],
    write: (values, out) => {
      for (const value of values) one.write(value as T, out);
    },
    read: (before = [], wire) => [...before, one.read(undefined, wire) as NonNullable<T>],
  };
}

const ENTRY = { key: text(1), value: text(2) };

export function texts(number: number): Field<Readonly<Record<string, string>>> {
  return {
    number,
    absent: {},
    write: (values, out) => {
      for (const [name, value] of Object.entries(values)) pushBytes(number, encode(ENTRY, { key: name, value }), out);
    },
    read: (before = {}, wire) => {
      const entry = decode(ENTRY, wire as Buffer);
      return { ...before, [entry.key]: entry.value };
    },
  };
}

export function encode<T extends Table>(table: T, value: Sent<T>): Buffer {
  const out: number[][] = [];
  for (const [name, field] of Object.entries(table)) {
    const given = value[name];
    if (given !== undefined) field.write(given, out);
  }
  return Buffer.concat(out.map((part) => Buffer.from(part)));
}

/** Fields that are not in the table are passed over. */
export function decode<T extends Table>(table: T, from: Buffer): Received<T> {
  const entries = Object.entries(table);
  const value: Record<string, unknown> = Object.fromEntries(entries.map(([name, { absent }]) => [name, absent]));
  const byNumber = new Map(entries.map(([name, field]) => [field.number, { name, field }]));
  const seen = new Set<number>();
  for (let at = 0; at < from.length; ) {
    const head = readVarint(from, at);
    const number = Number(head.value >> 3n);
    const wire = readValue(from, head.next, Number(head.value & 7n));
    at = wire.next;
    const known = byNumber.get(number);
    if (!known) continue;
    value[known.name] = known.field.read(seen.has(number) ? value[known.name] : undefined, wire.value);
    seen.add(number);
  }
  return value as Received<T>;
}

function bytesField<T>(number: number, absent: T, from: (value: T) => Buffer, to: (read: Buffer) => T): Field<T> {
  return {
    number,
    absent,
    write: (value, out) => pushBytes(number, from(value), out),
    read: (_, wire) => to(wire as Buffer),
  };
}

function pushBytes(number: number, content: Buffer, out: number[][]): void {
  out.push(key(number, BYTES), varint(BigInt(content.length)), [...content]);
}

function key(number: number, wireType: number): number[] {
  return varint(BigInt((number << 3) | wireType));
}

function varint(value: bigint): number[] {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) out.push(Number(rest & 127n) | 128);
  return [...out, Number(rest)];
}

function readVarint(from: Buffer, at: number): { value: bigint; next: number } {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = from[at++];
    if (byte === undefined) throw new RangeError("a message ends in the middle of a number");
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return { value, next: at };
  }
}

function readValue(from: Buffer, at: number, wireType: number): { value: bigint | Buffer; next: number } {
  if (wireType === VARINT) return readVarint(from, at);
  const head = wireType === BYTES ? readVarint(from, at) : { value: BigInt(FIXED[wireType] ?? -1), next: at };
  const next = head.next + Number(head.value);
  if (head.value < 0n || next > from.length) throw new RangeError(`a message ends in the middle of a field`);
  return { value: from.subarray(head.next, next), next };
}
