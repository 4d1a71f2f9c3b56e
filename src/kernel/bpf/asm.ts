/**
 * An assembler for BPF: writes the 8-byte instructions the kernel loads, with labels for jumps. Each method appends one instruction and
 * returns the assembler, so that a program reads from top to bottom.
 */
import { errors } from "../errors.ts";

export type Register = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10;

/** r0 result, r1 to r5 arguments (lost in calls), r6 to r9 kept, r10 the frame. */
export const R0: Register = 0;
export const R1: Register = 1;
export const R2: Register = 2;
export const R3: Register = 3;
export const R6: Register = 6;
export const R7: Register = 7;
export const R9: Register = 9;
export const R10: Register = 10;

/** A number, or the content of a register. */
export type Operand = number | { readonly register: Register };

export function reg(register: Register): Operand {
  return { register };
}

const SIZES = { u8: 0x10, u16: 0x08, u32: 0x00, u64: 0x18 } as const;
export type Size = keyof typeof SIZES;

const ARITHMETIC = {
  add: 0x00,
  sub: 0x10,
  mul: 0x20,
  div: 0x30,
  or: 0x40,
  and: 0x50,
  lsh: 0x60,
  rsh: 0x70,
  neg: 0x80,
  mod: 0x90,
  xor: 0xa0,
  mov: 0xb0,
  arsh: 0xc0,
} as const;
export type Arithmetic = keyof typeof ARITHMETIC;

const CONDITIONS = {
  eq: 0x10,
  gt: 0x20,
  ge: 0x30,
  set: 0x40,
  ne: 0x50,
  sgt: 0x60,
  sge: 0x70,
  lt: 0xa0,
  le: 0xb0,
  slt: 0xc0,
  sle: 0xd0,
} as const;
export type Condition = keyof typeof CONDITIONS;

export const HELPERS = {
  mapLookup: 1,
  mapUpdate: 2,
  mapDelete: 3,
  ktimeNs: 5,
  skbStoreBytes: 9,
  l3CsumReplace: 10,
  l4CsumReplace: 11,
  tailCall: 12,
  redirect: 23,
  perfEventOutput: 25,
  skbLoadBytes: 26,
  fibLookup: 69,
  getNetnsCookie: 122,
  ringbufOutput: 130,
  ringbufReserve: 131,
  redirectNeigh: 152,
  redirectPeer: 155,
} as const;
export type Helper = keyof typeof HELPERS;

/** Operation widths: 64 bits, or the lower 32 with the upper ones set to zero. */
export type Width = 32 | 64;

const CLASS = { alu32: 0x04, alu64: 0x07, jump64: 0x05, jump32: 0x06 } as const;
const FROM_REGISTER = 0x08;
const LOAD_WIDE = 0x18;
const CALL = 0x85;
const PSEUDO = { mapFd: 1, mapValue: 2, localCall: 1 } as const;
const MAX_JUMP = 32767;

interface Instruction {
  code: number;
  target: number;
  source: number;
  offset: number;
  immediate: number;
}

export class Assembler {
  private readonly instructions: Instruction[] = [];
  private readonly labels = new Map<string, number>();
  private readonly jumps: { at: number; label: string }[] = [];

  /** Instructions so far; a wide load counts as two. */
  get length(): number {
    return this.instructions.length;
  }

  /** Names the place where the next instruction will be. */
  label(name: string): this {
    if (this.labels.has(name)) throw errors.KERNEL_BAD_ASSEMBLY(`the label ${name} is set twice`);
    this.labels.set(name, this.length);
    return this;
  }

  alu(operation: Arithmetic, target: Register, operand: Operand, width: Width = 64): this {
    const kind = (width === 64 ? CLASS.alu64 : CLASS.alu32) | ARITHMETIC[operation];
    return this.withOperand(kind, target, 0, operand);
  }

  mov(target: Register, operand: Operand, width: Width = 64): this {
    return this.alu("mov", target, operand, width);
  }

  /** Between network order and the processor's. */
  swap(target: Register, bits: 16 | 32 | 64): this {
    return this.emit(0xdc, target, 0, 0, bits);
  }

  load(size: Size, target: Register, from: Register, offset: number): this {
    return this.emit(0x61 | SIZES[size], target, from, offset, 0);
  }

  store(size: Size, to: Register, offset: number, value: Operand): this {
    if (typeof value === "number") return this.emit(0x62 | SIZES[size], to, 0, offset, value);
    return this.emit(0x63 | SIZES[size], to, value.register, offset, 0);
  }

  atomicAdd(size: "u32" | "u64", to: Register, offset: number, value: Register): this {
    return this.emit(0xc3 | SIZES[size], to, value, offset, 0);
  }

  loadWide(target: Register, value: bigint): this {
    return this.wide(target, 0, Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  /** A map, as helpers want it. */
  loadMap(target: Register, map: { readonly fd: number }): this {
    return this.wide(target, PSEUDO.mapFd, map.fd, 0);
  }

  /** The address of a byte in the one value of an array map. */
  loadMapValue(target: Register, map: { readonly fd: number }, offset: number): this {
    return this.wide(target, PSEUDO.mapValue, map.fd, offset);
  }

  jump(label: string): this {
    this.jumps.push({ at: this.length, label });
    return this.emit(CLASS.jump64, 0, 0, 0, 0);
  }

  jumpIf(condition: Condition, left: Register, right: Operand, label: string, width: Width = 64): this {
    this.jumps.push({ at: this.length, label });
    const kind = (width === 64 ? CLASS.jump64 : CLASS.jump32) | CONDITIONS[condition];
    return this.withOperand(kind, left, 0, right);
  }

  call(helper: Helper | number): this {
    return this.emit(CALL, 0, 0, 0, typeof helper === "number" ? helper : HELPERS[helper]);
  }

  /** A function of this program, at a label. Its arguments are r1 to r5. */
  callLocal(label: string): this {
    this.jumps.push({ at: this.length, label });
    return this.emit(CALL, 0, PSEUDO.localCall, 0, 0);
  }

  exit(): this {
    return this.emit(0x95, 0, 0, 0, 0);
  }

  /** The program as the kernel loads it. Jumps have 16 bits: one that is too far is refused here, where its label can be named. */
  build(): Buffer {
    for (const { at, label } of this.jumps) {
      const to = this.labels.get(label);
      if (to === undefined) throw errors.KERNEL_BAD_ASSEMBLY(`there is no label ${label}`);
      const distance = to - at - 1;
      const jump = this.instructions[at]!;
      // Calls have 32 bits for the distance, jumps have 16.
      if (jump.code === CALL) {
        jump.immediate = distance;
        continue;
      }
      if (Math.abs(distance) > MAX_JUMP) {
        throw errors.KERNEL_BAD_ASSEMBLY(
          `the jump to ${label} is ${distance} instructions, and ${MAX_JUMP} are possible`,
        );
      }
      jump.offset = distance;
    }
    const bytes = Buffer.alloc(this.length * 8);
    for (const [index, { code, target, source, offset, immediate }] of this.instructions.entries()) {
      bytes.writeUInt8(code, index * 8);
      bytes.writeUInt8(target | (source << 4), index * 8 + 1);
      bytes.writeInt16LE(offset, index * 8 + 2);
      bytes.writeInt32LE(immediate, index * 8 + 4);
    }
    return bytes;
  }

  private withOperand(code: number, target: Register, offset: number, operand: Operand): this {
    if (typeof operand === "number") return this.emit(code, target, 0, offset, operand);
    return this.emit(code | FROM_REGISTER, target, operand.register, offset, 0);
  }

  private wide(target: Register, source: number, low: number, high: number): this {
    return this.emit(LOAD_WIDE, target, source, 0, low).emit(0, 0, 0, 0, high);
  }

  private emit(code: number, target: number, source: number, offset: number, immediate: number): this {
    // 32 bits either way: 0xffffffff and -1 are the same pattern. More would silently become another number.
    if (!Number.isInteger(immediate) || immediate < -0x8000_0000 || immediate > 0xffff_ffff) {
      throw errors.KERNEL_BAD_ASSEMBLY(`${immediate} does not fit into 32 bits`);
    }
    this.instructions.push({ code, target, source, offset, immediate: immediate | 0 });
    return this;
  }
}
