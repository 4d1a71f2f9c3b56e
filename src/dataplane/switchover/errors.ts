import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  HANDOVER_STEP_WITHOUT_EFFECT: {
    means:
      "A step of a node's switchover succeeded, and the kernel does not show its effect. Something else undoes it.",
    example: ["attach programs"],
    say: (step: string) => `changing the data plane: ${step} was done, and nothing is different`,
    fix: () => "see who else changes our nftables tables or pins on this node; it is tried again",
  },
});
