import { describe, expect, it } from "vitest";
import { fromNodeCidrs } from "./node-cidrs.ts";

describe("addresses from the node's own prefixes", () => {
  it("one of each, the first that no other pod has, and the same again for the same pod", () => {
    const cidrs = ["10.244.1.0/29", "fd00:1::/125"];
    expect(fromNodeCidrs(cidrs, new Set(), [])).toEqual(["10.244.1.2", "fd00:1::2"]);
    expect(fromNodeCidrs(cidrs, new Set(["10.244.1.2"]), [])).toEqual(["10.244.1.3", "fd00:1::2"]);
    expect(fromNodeCidrs(cidrs, new Set(), ["10.244.1.6", "fd00:1::5"])).toEqual(["10.244.1.6", "fd00:1::5"]);
  });

  it("says so when there is none left, or no prefix", () => {
    const all = new Set(["10.244.1.2", "10.244.1.3", "10.244.1.4", "10.244.1.5", "10.244.1.6"]);
    expect(() => fromNodeCidrs(["10.244.1.0/29"], all, [])).toThrow(
      expect.objectContaining({ code: "IPAM_EXHAUSTED" }),
    );
    expect(() => fromNodeCidrs([], all, [])).toThrow(/the node has none/);
  });
});
