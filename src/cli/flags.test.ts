import { expect, it } from "vitest";
import { dataplane, duration, release } from "./flags.ts";

it.each([
  ["30s", 30_000],
  ["5m", 300_000],
  ["1h30m", 5_400_000],
  ["250ms", 250],
  ["1.5s", 1500],
  ["0", 0],
  ["45", 45_000],
])("a time of %s", (text, milliseconds) => {
  expect(duration("--timeout")(text)).toBe(milliseconds);
});

it.each(["", "s", "5 s", "5x", "1h 30m", "-1s", "1e3s"])("no time: %j", (text) => {
  expect(() => duration("--timeout")(text)).toThrow(/--timeout cannot be/);
});

it("writes a version with its v, as people leave it out", () => {
  expect(release("--installed")("3.22.2")).toBe("v3.22.2");
  expect(release("--installed")("v3.22")).toBe("v3.22");
  for (const text of ["3", "v3.x", "3.22.2.1", "latest", ""]) {
    expect(() => release("--installed")(text)).toThrow();
  }
});

it.each([
  ["bpf", "BPF"],
  ["BPF", "BPF"],
  ["eBPF", "BPF"],
  ["standard", "Nftables"],
  ["Nftables", "Nftables"],
  ["nft", "Nftables"],
])("a data plane called %s", (text, mode) => {
  expect(dataplane("--to")(text)).toBe(mode);
});

it.each(["", "iptables", "constructor"])("no data plane: %j", (text) => {
  expect(() => dataplane("--to")(text)).toThrow(/--to cannot be/);
});
