import type { DataplaneState } from "../../api/dataplane.ts";
import { NODE_MODE } from "../../gen/bpf/layout.gen.ts";

/** The word in the kernel that programs of every release read. */
export const STATE_NUMBERS: Readonly<Record<DataplaneState, number>> = {
  Off: NODE_MODE.MODE_OFF,
  Active: NODE_MODE.MODE_EBPF,
  Draining: NODE_MODE.MODE_DRAIN,
};

export function stateOfNumber(number: number | undefined): DataplaneState | undefined {
  return (Object.keys(STATE_NUMBERS) as DataplaneState[]).find((state) => STATE_NUMBERS[state] === number);
}
