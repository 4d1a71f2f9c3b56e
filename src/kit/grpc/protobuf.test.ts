import { expect, it } from "vitest";
import { bytes, decode, encode, fixed64, flag, int, ints, many, message, text, texts } from "./protobuf.ts";

const INNER = { id: int(1), note: text(2) };
const TABLE = {
  name: text(1),
  count: int(2),
  on: flag(3),
  words: many(text(4)),
  labels: texts(5),
  inner: message(6, INNER),
  all: many(message(16, INNER)),
  raw: bytes(17),
};

it("writes fields as the format has them: key, length, content", () => {
  expect(encode(TABLE, { name: "ab", count: 300, on: true }).toString("hex")).toBe("0a02616210ac021801");
  expect(encode(TABLE, { inner: {} }).toString("hex")).toBe("3200");
  expect(encode(TABLE, { all: [{ id: 1 }] }).toString("hex")).toBe("8201020801");
});

it("reads back what it writes, of every kind", () => {
  const value = {
    name: "ünï",
    count: -1,
    on: true,
    words: ["a", "", "b"],
    labels: { "a/b": "c", empty: "" },
    inner: { id: 2 ** 40, note: "" },
    all: [
      { id: 1, note: "x" },
      { id: 0, note: "y" },
    ],
    raw: Buffer.from([0, 255]),
  };
  expect(decode(TABLE, encode(TABLE, value))).toEqual(value);
});

it("gives what was not sent its default, and passes over what it does not know", () => {
  const absent = {
    name: "",
    count: 0,
    on: false,
    words: [],
    labels: {},
    inner: undefined,
    all: [],
    raw: Buffer.alloc(0),
  };
  expect(decode(TABLE, Buffer.alloc(0))).toEqual(absent);
  const unknown = encode({ a: text(99), b: int(98), c: message(97, INNER) }, { a: "x", b: 7, c: { id: 1 } });
  const fixed = Buffer.from("9106" + "0102030405060708" + "9506" + "01020304", "hex");
  expect(decode(TABLE, Buffer.concat([unknown, fixed]))).toEqual(absent);
});

it("refuses a message that ends too early", () => {
  expect(() => decode(TABLE, Buffer.from("0a05616", "hex"))).toThrow(RangeError);
  expect(() => decode(TABLE, Buffer.from("1080", "hex"))).toThrow(RangeError);
});

it("writes numbers in a row packed, and reads them packed, one by one, and mixed", () => {
  const table = { counts: ints(4) };
  expect(encode(table, { counts: [3, 270, 86_942] }).toString("hex")).toBe("2206038e029ea705");
  expect(encode(table, { counts: [] }).length).toBe(0);
  expect(decode(table, Buffer.from("2206038e029ea705", "hex"))).toEqual({ counts: [3, 270, 86_942] });
  expect(decode(table, Buffer.from("2003" + "22028e02" + "209ea705", "hex"))).toEqual({ counts: [3, 270, 86_942] });
  expect(decode(table, encode(table, { counts: [-1, 0] }))).toEqual({ counts: [-1, 0] });
  expect(() => decode(table, Buffer.from("220180", "hex"))).toThrow(RangeError);
});

it("sends numbers of 64 bits that are not shortened", () => {
  const table = { at: fixed64(5) };
  expect(encode(table, { at: 258n }).toString("hex")).toBe("290201000000000000");
  expect(decode(table, encode(table, { at: 2n ** 63n }))).toEqual({ at: 2n ** 63n });
  expect(decode(table, Buffer.alloc(0))).toEqual({ at: 0n });
  expect(() => decode(table, Buffer.from("2a0101", "hex"))).toThrow(RangeError);
});
