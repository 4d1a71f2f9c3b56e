import { NODE_FIELD } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import { u32 } from "./programs.ts";

type NodeField = Exclude<keyof typeof NODE_FIELD, "NODE_FIELDS">;

/** State of the node that programs read while they run: one write of one word is in effect at the next packet. */
export class NodeState {
  private readonly map: BpfMap;

  constructor(map: BpfMap) {
    this.map = map;
  }

  put(name: NodeField, value: number): void {
    this.map.update(u32(NODE_FIELD[name]), u32(value));
  }

  get(name: NodeField): number {
    return this.map.lookup(u32(NODE_FIELD[name]))?.readUInt32LE() ?? 0;
  }
}
