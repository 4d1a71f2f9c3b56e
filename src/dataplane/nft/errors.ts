import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  NFT_NOT_WRITTEN: {
    args: ["what", "why"],
    say: (what: string, why: string) =>
      `${what} could not be written to nftables, so what it would decide is denied: ${why}`,
    fix: () => "vendorctl check --for switch",
  },
});
