import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  PAPER_NODE_CANNOT_EXEC: {
    args: ["pod"],
    say: (pod: string) => `pod ${pod} is on a simulated node, which runs no process`,
    fix: () => "bring the cluster up with nodes that run processes",
  },
  POD_NOT_ON_NODE: {
    args: ["uid"],
    say: (uid: string) => `no pod with UID ${uid} is on any node`,
  },
  NODE_UNKNOWN: {
    args: ["name"],
    say: (name: string) => `there is no node "${name}"`,
  },
});
