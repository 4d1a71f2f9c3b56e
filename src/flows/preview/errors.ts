import { defineErrors } from "../../kit/errors.ts";

/** sysexits: a usage error. */
const USAGE = 64;

export const errors = defineErrors({
  FLOW_PREVIEWS_FULL: {
    means:
      "As many previews are being calculated as the server calculates at a time: one for each user, and few in all.",
    example: ["you have asked for one already"],
    say: (why: string) => `no preview is calculated now: ${why}`,
    fix: () => "wait until the other one is answered, and try again",
  },
  FLOW_PREVIEW_BAD: {
    means: "What was sent is no preview, or has an object that a preview does not take.",
    example: ["a preview has at most 50 objects, and this one has 51"],
    say: (why: string) => why,
    fix: () => "correct what the sentence names",
    exitCode: USAGE,
  },
});
