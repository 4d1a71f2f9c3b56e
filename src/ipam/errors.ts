import { defineErrors } from "../kit/errors.ts";

/** sysexits: a temporary failure. */
const TRY_LATER = 75;

export const errors = defineErrors({
  IPAM_EXHAUSTED: {
    means:
      "Every address of the pools that a pod or a Service may use is taken. The pod is not started; the Service has no address.",
    example: [["default-ipv4-ippool"], "all 64 addresses are allocated"],
    say: (pools: readonly string[], why: string) => `no address is free in ${pools.join(", ")}: ${why}`,
    fix: () => "add an IPPool, or free addresses; IPAMConfiguration limits how many blocks a node may have",
  },
  IPAM_ADDRESS_TAKEN: {
    means: "A pod or a Service asks for one address by annotation, and something else has it.",
    example: ["10.244.1.7", "pod shop/db-0"],
    say: (address: string, by: string) => `address ${address} is taken by ${by}`,
    fix: () => "request another address, or delete what has this one",
  },
  IPAM_BUSY: {
    means: "Several nodes changed the same IPAM object at once, and this one lost every time.",
    example: ["IPAMBlock 10.244.1.0/26"],
    say: (what: string) => `${what} was changed concurrently at every attempt`,
    fix: () => "none needed: the container runtime, or the controllers, retry",
    exitCode: TRY_LATER,
  },
});
