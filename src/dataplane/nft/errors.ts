import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  NFT_NOT_WRITTEN: {
    means:
      "The kernel refused rules of the nftables data plane. Until they are written, what they would decide is denied.",
    example: ["the policy of pod shop/web-1", "invalid argument"],
    say: (what: string, why: string) =>
      `${what} could not be written to nftables, so what it would decide is denied: ${why}`,
    fix: () => "vendorctl check --for switch",
  },
  NFT_FLOWS_NOT_COUNTED: {
    means: "Connections could not be counted for flow logs. Policy is enforced all the same.",
    example: ["no space left on device"],
    say: (why: string) => `connections could not be counted for flow logs: ${why}`,
    fix: () => "free space in the run directory, or see the agent's log",
  },
  NFT_INTERVAL_OPEN: {
    means: "The counts of an interval were asked for that has not ended.",
    example: ["7"],
    say: (interval: string) => `interval ${interval} is still being counted`,
    fix: () => "read it after the next interval has begun",
  },
});
