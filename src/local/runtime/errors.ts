import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  PAPER_NODE_CANNOT_EXEC: {
    means: "kubectl exec or logs was used on a pod of a simulated node, on which no process runs.",
    example: ["shop/web-1"],
    say: (pod: string) => `pod ${pod} is on a simulated node, which runs no process`,
    fix: () => "bring the cluster up with nodes that run processes",
  },
  POD_NOT_ON_NODE: {
    means: "The embedded kubelet was asked about a pod that it does not run.",
    example: ["0b1c5a52"],
    say: (uid: string) => `no pod with UID ${uid} is on any node`,
  },
  NODE_UNKNOWN: {
    means: "The embedded cluster has no node of this name.",
    example: ["node-9"],
    say: (name: string) => `there is no node "${name}"`,
  },
});
