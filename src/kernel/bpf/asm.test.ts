import { describe, expect, it } from "vitest";
import { Assembler, R0, R1, R2, R10, reg } from "./asm.ts";

describe("the assembler", () => {
  it("writes what the kernel's own disassembler would show", () => {
    const bytes = new Assembler()
      .mov(R0, 0)
      .load("u32", R2, R1, 8)
      .store("u64", R10, -8, reg(R2))
      .alu("add", R2, reg(R1))
      .swap(R2, 16)
      .call("mapLookup")
      .exit()
      .build();
    expect(bytes.toString("hex").match(/.{16}/g)).toEqual([
      "b700000000000000",
      "6112080000000000",
      "7b2af8ff00000000",
      "0f12000000000000",
      "dc02000010000000",
      "8500000001000000",
      "9500000000000000",
    ]);
  });

  it("finds labels before and behind a jump, and local functions", () => {
    const bytes = new Assembler()
      .label("start")
      .jumpIf("eq", R1, 5, "end", 32)
      .callLocal("own")
      .jump("start")
      .label("end")
      .mov(R0, -1)
      .exit()
      .label("own")
      .exit()
      .build();
    expect(bytes.readInt16LE(2)).toBe(2);
    expect(bytes.readInt32LE(8 + 4)).toBe(3);
    expect(bytes.readInt16LE(16 + 2)).toBe(-3);
    expect(bytes.readInt32LE(24 + 4)).toBe(-1);
  });

  it("takes 64 bits, maps and their values as two instructions", () => {
    const bytes = new Assembler()
      .loadWide(R1, 0xffff_ffff_0000_0001n)
      .loadMap(R1, { fd: 7 })
      .loadMapValue(R1, { fd: 7 }, 24)
      .build();
    expect(bytes.length).toBe(48);
    expect([bytes.readInt32LE(4), bytes.readInt32LE(12)]).toEqual([1, -1]);
    expect([bytes[17], bytes.readInt32LE(20)]).toEqual([0x11, 7]);
    expect([bytes[33], bytes.readInt32LE(36), bytes.readInt32LE(44)]).toEqual([0x21, 7, 24]);
  });

  it("refuses what would silently become something else", () => {
    const refused = expect.objectContaining({ code: "KERNEL_BAD_ASSEMBLY" });
    expect(() => new Assembler().jump("nowhere").build()).toThrow(refused);
    expect(() => new Assembler().label("here").label("here")).toThrow(refused);
    expect(() => new Assembler().mov(R0, 0x1_0000_0000)).toThrow(refused);
    const far = new Assembler().jump("end");
    for (let count = 0; count < 32_768; count++) far.mov(R0, 0);
    expect(() => far.label("end").exit().build()).toThrow(/the jump to end is 32768 instructions/);
  });
});
