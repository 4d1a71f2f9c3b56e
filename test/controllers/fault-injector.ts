import type { ApiRequest } from "../../src/api/transport.ts";
import type { Fault } from "./controllers-lab.ts";

/** One write in eight fails in one of five ways, one read in a hundred; of a killed program everything does, from that moment on. */
export function faultInjector(random: () => number) {
  const writeFaults: Fault[] = [{ status: 409 }, { status: 429 }, { status: 500 }, "refused", "lost"];
  const dead = new Set<number>();
  let ended = false;
  let count = 0;
  return {
    count: () => count,
    kill: (program: number) => void dead.add(program),
    end() {
      ended = true;
    },
    forProgram:
      (program: number) =>
      ({ method }: ApiRequest): Fault | undefined => {
        if (dead.has(program)) return "refused";
        if (ended || random() >= (method === "GET" ? 0.01 : 0.125)) return undefined;
        count++;
        return method === "GET" ? "refused" : writeFaults[Math.floor(random() * writeFaults.length)];
      },
  };
}

/** The same numbers for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
