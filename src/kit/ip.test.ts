import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contains, formatAddress, formatCidr, overlaps, parseAddress, parseCidr, V4, V6 } from "./ip.ts";

const canonical = (text: string) => {
  const address = parseAddress(text);
  return address && formatAddress(address);
};

describe("addresses", () => {
  it.each([
    ["10.0.0.1", "10.0.0.1"],
    ["255.255.255.255", "255.255.255.255"],
    ["::", "::"],
    ["::1", "::1"],
    ["1::", "1::"],
    ["FE80:0:0:0:0:0:0:1", "fe80::1"],
    ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["::ffff:10.0.0.1", "::ffff:a00:1"],
    ["64:ff9b::192.0.2.1", "64:ff9b::c000:201"],
  ])("%s is printed as %s", (text, printed) => expect(canonical(text)).toBe(printed));

  it.each([
    "",
    "10.0.0",
    "10.0.0.256",
    "010.0.0.1",
    "10.0.0.1 ",
    "10.0.0.1:80",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4::5:6:7:8",
    ":1",
    "fe80::1%eth0",
    "12345::",
    "1.2.3.4::",
    "example.com",
  ])("%j is no address", (text) => expect(parseAddress(text)).toBeUndefined());

  it("parses back whatever it prints", () => {
    const address = fc.oneof(
      fc.bigInt(0n, 2n ** 32n - 1n).map((value) => ({ family: V4, value })),
      fc.bigInt(0n, 2n ** 128n - 1n).map((value) => ({ family: V6, value })),
    );
    fc.assert(
      fc.property(address, (given) => {
        expect(parseAddress(formatAddress(given))).toEqual(given);
      }),
    );
  });
});

describe("prefixes", () => {
  it("knows whether host bits were set", () => {
    expect(parseCidr("10.1.2.3/8")).toMatchObject({ family: V4, length: 8, masked: false });
    expect(formatCidr(parseCidr("10.1.2.3/8")!)).toBe("10.0.0.0/8");
    expect(parseCidr("fd00::/64")).toMatchObject({ family: V6, length: 64, masked: true });
  });

  it.each(["10.0.0.0", "10.0.0.0/33", "fd00::/129", "10.0.0.0/08", "10.0.0.0/-1", "garbage/8", "10.0.0.0/8/8"])(
    "%j is no prefix",
    (text) => expect(parseCidr(text)).toBeUndefined(),
  );

  it.each([
    ["10.0.0.0/8", "10.255.0.1", true],
    ["10.0.0.0/8", "11.0.0.1", false],
    ["0.0.0.0/0", "1.2.3.4", true],
    ["0.0.0.0/0", "::1", false],
    ["fd00::/64", "fd00::ffff", true],
  ])("%s contains %s: %s", (cidr, address, expected) =>
    expect(contains(parseCidr(cidr)!, parseAddress(address)!)).toBe(expected),
  );

  it.each([
    ["10.0.0.0/8", "10.1.0.0/16", true],
    ["10.1.0.0/16", "10.0.0.0/8", true],
    ["10.0.0.0/16", "10.1.0.0/16", false],
    ["::/0", "0.0.0.0/0", false],
  ])("%s overlaps %s: %s", (a, b, expected) => expect(overlaps(parseCidr(a)!, parseCidr(b)!)).toBe(expected));
});
