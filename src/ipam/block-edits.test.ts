import { describe, expect, it } from "vitest";
import { type Cidr, parseCidr } from "../kit/ip.ts";
import { firstFree, firstRested, newBlock, withAddress, withoutHandle } from "./block-edits.ts";
import { nodeHolder } from "./block-holder.ts";

const NOW = Date.UTC(2026, 0, 1);
/** As long as an address rests. */
const REST_MS = 30_000;

describe("an address that was released", () => {
  const full = [0, 1, 2, 3].reduce(
    (block, ordinal) => withAddress(block, ordinal, { handle: `h${ordinal}`, facts: {} }),
    newBlock(parseCidr("10.0.0.0/30") as Cidr, nodeHolder("a")),
  );
  const released = withoutHandle(full, "h2", NOW);

  it("rests before it is given out again, and that is written in the block", () => {
    expect(firstFree(released)).toBe(2);
    expect(firstRested(released, NOW + 1_000)).toBeUndefined();
    expect(firstRested(released, NOW + REST_MS)).toBe(2);
    expect(released.metadata.annotations).toEqual({ "vendor.io/released-addresses": `{"2":${NOW / 1000}}` });
  });

  it("is forgotten in the block once it has rested", () => {
    const later = withoutHandle(released, "h0", NOW + REST_MS);
    expect(later.metadata.annotations).toEqual({
      "vendor.io/released-addresses": `{"0":${(NOW + REST_MS) / 1000}}`,
    });
    expect(later.spec.unallocated).toEqual([2, 0]);
  });

  it("rests not at all where the note cannot be read", () => {
    const annotations = { "vendor.io/released-addresses": "[not json" };
    expect(firstRested({ ...released, metadata: { ...released.metadata, annotations } }, NOW)).toBe(2);
  });
});
