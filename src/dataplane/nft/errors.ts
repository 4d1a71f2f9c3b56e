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
});
