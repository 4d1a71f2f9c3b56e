import { defineErrors } from "../../kit/errors.ts";

/** sysexits: a usage error. */
const USAGE = 64;

export const errors = defineErrors({
  FLOW_BATCH_BAD: {
    means: "An agent sent a batch of flows with a number that is no count. Nothing of the batch was added.",
    example: ["node-1", "bytes"],
    say: (node: string, field: string) =>
      `a batch of flows of node ${node} cannot be added: ${field} is no whole number from 0`,
    fix: () => "run agents and flow logs of one release",
  },
  FLOW_CONTINUE_EXPIRED: {
    means:
      "The next page of a list of flows was asked for with a token that is too old, or that is not of this list and its reader.",
    say: () => "the list that this continue token is of is no longer kept",
    fix: () => "list again from the start",
  },
  FLOW_VERSION_EXPIRED: {
    means:
      "A watch of flows asked for what changed since a version that is older than the history, or that is not of this server.",
    example: ["1234"],
    say: (version: string) => `flows are no longer known as of resourceVersion ${version}`,
    fix: () => "list again, and watch from the version of that list",
  },
  FLOW_WATCH_TIME: {
    means: "The query of a watch has since or until: a watch follows what comes from now on.",
    example: ["since"],
    say: (field: string) => `a watch has no ${field}`,
    fix: (field: string) => `remove ${field} from the query; what was before is in a list`,
    exitCode: USAGE,
  },
  FLOW_WATCHES_FULL: {
    means: "There are as many watches of flows as the server serves at a time, in all or to one user.",
    example: [100],
    say: (most: number) => `${most} watches are open, and more are not served`,
    fix: () => "end one, or try again later",
  },
  FLOW_EXPLANATIONS_FULL: {
    means: "As many explanations of flows are being made as the server makes at a time.",
    example: [8],
    say: (most: number) => `${most} flows are being explained, and more are not at a time`,
    fix: () => "try again in a moment",
  },
  FLOW_PROPOSALS_FULL: {
    means: "As many proposals of policies are being made as the server makes at a time.",
    example: [4],
    say: (most: number) => `${most} proposals are being made, and more are not at a time`,
    fix: () => "try again in a moment",
  },
  FLOW_FIELD_BAD: {
    means: "Hints or a ranking were asked for by a field that has no values to list.",
    example: ["bytes", "from, to, port"],
    say: (field: string, known: string) => `flows cannot be listed by "${field}", only by ${known}`,
    fix: () => "choose one of these fields",
    exitCode: USAGE,
  },
});
