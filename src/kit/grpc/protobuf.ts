/** Protocol buffers as far as our programs need them: a message is a table of numbered fields, and the tables give the types. */
export interface Field<T> {
  readonly number: number;
  /** Whether it is sent as bytes with their length, or as a number; numbers in a row may be sent as either. */
  readonly sentAs: "bytes" | "number" | "either";
  /** Appends the value with its key. */
  write(value: T, out: Buffer[]): void;
  /** Takes one occurrence of the field: what was known of it before, which is this field's own to change, and a number or bytes. */
  read(before: T | undefined, wire: Wire): T;
  /** What a field that is not sent means; none for messages. */
  readonly absent: T;
}

/** A number beyond 28 bits is a bigint. */
type Wire = number | bigint | Buffer;

export type Table = Readonly<Record<string, Field<unknown>>>;
/** What can be sent: every field may be left out. */
export type Sent<T extends Table> = { [K in keyof T]?: Value<T[K]> | undefined };
/** What is received: every field is there, if only by its default. */
export type Received<T extends Table> = { [K in keyof T]: Value<T[K]> };
type Value<F> = F extends Field<infer T> ? T : never;

const VARINT = 0;
const FIXED_64 = 1;
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
  sentAs: "number",
  absent: 0,
  write: (value, out) => {
    if (value !== 0) out.push(key(number, VARINT), varint(value));
  },
  read: (_, wire) => (typeof wire === "number" ? wire : Number(BigInt.asIntN(64, wire as bigint))),
});

/** 64 bits of a width that does not change, as times in nanoseconds are. */
export const fixed64 = (number: number): Field<bigint> => ({
  number,
  sentAs: "bytes",
  absent: 0n,
  write: (value, out) => {
    const content = Buffer.alloc(8);
    content.writeBigUInt64LE(BigInt.asUintN(64, value));
    if (value !== 0n) out.push(key(number, FIXED_64), content);
  },
  read: (_, wire) => {
    if ((wire as Buffer).length !== 8) throw new RangeError(`field ${number} of a message is of another type`);
    return (wire as Buffer).readBigUInt64LE();
  },
});

/** Many numbers: written packed, read packed and one by one. */
export const ints = (number: number): Field<readonly number[]> => {
  const one = int(number);
  return {
    number,
    sentAs: "either",
    absent: [],
    write: (values, out) => {
      if (values.length > 0) pushBytes(number, Buffer.concat(values.map(varint)), out);
    },
    read: (before, wire) => {
      const values = (before ?? []) as number[];
      if (!(wire instanceof Buffer)) values.push(one.read(undefined, wire));
      else
        for (let at = 0; at < wire.length; ) {
          const { value, next } = readVarint(wire, at);
          values.push(one.read(undefined, value));
          at = next;
        }
      return values;
    },
  };
};

export const flag = (number: number): Field<boolean> => ({
  number,
  sentAs: "number",
  absent: false,
  write: (value, out) => {
    if (value) out.push(key(number, VARINT), varint(1));
  },
  read: (_, wire) => wire !== 0 && wire !== 0n,
});

/** A message within another. One that is empty is sent too: that it is there means something. */
export function message<T extends Table>(number: number, table: T): Field<Sent<T> | undefined> {
  return {
    number,
    sentAs: "bytes",
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
    sentAs: one.sentAs,
    absent: [],
    write: (values, out) => {
      for (const value of values) one.write(value as T, out);
    },
    read: (before, wire) => {
      const values = (before ?? []) as NonNullable<T>[];
      values.push(one.read(undefined, wire) as NonNullable<T>);
      return values;
    },
  };
}

const ENTRY = { key: text(1), value: text(2) };

export function texts(number: number): Field<Readonly<Record<string, string>>> {
  return {
    number,
    sentAs: "bytes",
    absent: {},
    write: (values, out) => {
      for (const [name, value] of Object.entries(values)) pushBytes(number, encode(ENTRY, { key: name, value }), out);
    },
    read: (before, wire) => {
      const values = (before ?? {}) as Record<string, string>;
      const entry = decode(ENTRY, wire as Buffer);
      // A name such as `__proto__` is a name like any other.
      Object.defineProperty(values, entry.key, { value: entry.value, enumerable: true, configurable: true });
      return values;
    },
  };
}

export function encode<T extends Table>(table: T, value: Sent<T>): Buffer {
  const out: Buffer[] = [];
  for (const [name, field] of Object.entries(table)) {
    const given = value[name];
    if (given !== undefined) field.write(given, out);
  }
  return Buffer.concat(out);
}

/** Fields that are not in the table are passed over. What is no message throws a `RangeError`. */
export function decode<T extends Table>(table: T, from: Buffer): Received<T> {
  const { absent, byNumber } = arranged(table);
  const value: Record<string, unknown> = { ...absent };
  const seen = new Set<number>();
  for (let at = 0; at < from.length; ) {
    const head = readVarint(from, at);
    const tag = Number(head.value);
    const number = Math.floor(tag / 8);
    const wire = readValue(from, head.next, tag % 8);
    at = wire.next;
    const known = byNumber.get(number);
    if (!known) continue;
    const sentAs = wire.value instanceof Buffer ? "bytes" : "number";
    if (known.field.sentAs !== sentAs && known.field.sentAs !== "either") {
      throw new RangeError(`field ${number} of a message is of another type`);
    }
    value[known.name] = known.field.read(seen.has(number) ? value[known.name] : undefined, wire.value);
    seen.add(number);
  }
  return value as Received<T>;
}

interface Arranged {
  absent: Record<string, unknown>;
  byNumber: Map<number, { name: string; field: Field<unknown> }>;
}

const arrangements = new WeakMap<Table, Arranged>();

function arranged(table: Table): Arranged {
  const known = arrangements.get(table);
  if (known) return known;
  const entries = Object.entries(table);
  const made: Arranged = {
    absent: Object.fromEntries(entries.map(([name, { absent }]) => [name, absent])),
    byNumber: new Map(entries.map(([name, field]) => [field.number, { name, field }])),
  };
  arrangements.set(table, made);
  return made;
}

function bytesField<T>(number: number, absent: T, from: (value: T) => Buffer, to: (read: Buffer) => T): Field<T> {
  return {
    number,
    sentAs: "bytes",
    absent,
    write: (value, out) => pushBytes(number, from(value), out),
    read: (_, wire) => to(wire as Buffer),
  };
}

function pushBytes(number: number, content: Buffer, out: Buffer[]): void {
  out.push(key(number, BYTES), varint(content.length), content);
}

function key(number: number, wireType: number): Buffer {
  return varint(number * 8 + wireType);
}

function varint(value: number): Buffer {
  if (value >= 0 && value < 128) return SHORT[value] as Buffer;
  const out: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) out.push(Number(rest & 127n) | 128);
  return Buffer.from([...out, Number(rest)]);
}

/** Most numbers of a message have one byte: lengths, keys of fields, enumerations. */
const SHORT = Array.from({ length: 128 }, (_, value) => Buffer.of(value));

/** The most bytes a number of 64 bits has. */
const LONGEST_VARINT = 10;

function readVarint(from: Buffer, start: number): { value: number | bigint; next: number } {
  let value = 0;
  for (let at = start; at < start + 4; at++) {
    const byte = byteAt(from, at);
    value |= (byte & 127) << (7 * (at - start));
    if (byte < 128) return { value, next: at + 1 };
  }
  let long = BigInt(value);
  for (let at = start + 4; at < start + LONGEST_VARINT; at++) {
    const byte = byteAt(from, at);
    long |= BigInt(byte & 127) << BigInt(7 * (at - start));
    if (byte < 128) return { value: long, next: at + 1 };
  }
  throw new RangeError("a number of a message is too long");
}

function byteAt(from: Buffer, at: number): number {
  const byte = from[at];
  if (byte === undefined) throw new RangeError("a message ends in the middle of a number");
  return byte;
}

function readValue(from: Buffer, at: number, wireType: number): { value: Wire; next: number } {
  if (wireType === VARINT) return readVarint(from, at);
  const head = wireType === BYTES ? readVarint(from, at) : { value: FIXED[wireType] ?? -1, next: at };
  const next = head.next + Number(head.value);
  if (head.value < 0 || next > from.length) throw new RangeError("a message ends in the middle of a field");
  return { value: from.subarray(head.next, next), next };
}
