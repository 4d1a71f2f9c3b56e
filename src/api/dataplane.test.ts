import { expect, it } from "vitest";
import { dataplaneOf, parseDataplane } from "./dataplane.ts";

it.each([
  ["BPF", "BPF"],
  ["bpf", "BPF"],
  ["eBPF", "BPF"],
  ["Nftables", "Nftables"],
  ["nft", "Nftables"],
  ["standard", "Nftables"],
  ["Standard", "Nftables"],
  ["iptables", undefined],
  ["", undefined],
  ["toString", undefined],
])("people may write %j", (text, dataplane) => {
  expect(parseDataplane(text)).toBe(dataplane);
});

it("a plan or journal of an earlier release says standard", () => {
  expect((["BPF", "standard", "Nftables"] as const).map(dataplaneOf)).toEqual(["BPF", "Nftables", "Nftables"]);
});
