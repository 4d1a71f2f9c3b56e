import { NODE_WORD } from "../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../kernel/bpf-port.ts";
import { word } from "./programs.ts";

type NodeWord = Exclude<keyof typeof NODE_WORD, "NODE_WORDS">;

/** What the programs are told about the node while they run: one write of one word is in effect at the next packet. */
export class NodeWords {
  private readonly map: BpfMap;

  constructor(map: BpfMap) {
    this.map = map;
  }

  put(name: NodeWord, value: number): void {
    this.map.update(word(NODE_WORD[name]), word(value));
  }

  get(name: NodeWord): number {
    return this.map.lookup(word(NODE_WORD[name]))?.readUInt32LE() ?? 0;
  }
}
