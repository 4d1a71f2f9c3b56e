import { defineErrors } from "../../../kit/errors.ts";
import { EXIT } from "../../exit-status.ts";

export const errors = defineErrors({
  FLOWS_NOT_SERVED: {
    means: "The cluster does not serve flows.vendor.io: flow logs are not enabled, or vendor-flow-logs is not ready.",
    example: ["the server could not find the requested resource"],
    say: (why: string) => `the cluster serves no flows: ${why}`,
    fix: () => "run vendorctl flows enable; where they are enabled, see vendorctl status",
  },
  FLOWS_FORBIDDEN: {
    means: "The user may not list flows where they were asked for.",
    example: ['User "ana" cannot list resource "flows" in API group "flows.vendor.io" in the namespace "pay"'],
    say: (why: string) => why,
    fix: () => "use -n with a namespace of yours, or ask for what the role view has of the group flows.vendor.io",
  },
  FLOW_UNKNOWN: {
    means:
      "The flow that was asked about is not in flow logs: its ID is wrong, it is older than they are, or it is of another namespace.",
    example: ["8ffb9dda64a12c2e6f5bb0c1"],
    say: (id: string) => `there is no flow ${id}`,
    fix: () => "take an ID from vendorctl flows -o wide; explain it with the same -n",
    exitCode: EXIT.usage,
  },
  FLOW_PREVIEW_FORBIDDEN: {
    means: "The user may not list the flows of a preview, or not make the change that is previewed.",
    example: [
      'User "ana" cannot create resource "networkpolicies" in API group "vendor.io" in the namespace "pay", and a preview of it takes that right',
    ],
    say: (why: string) => why,
    fix: () => "preview a change that you may make, or ask for the right that the sentence names",
  },
  FLOWS_REFUSED: {
    means: "vendor-flow-logs refused what was asked for.",
    example: ['flows cannot be listed by "bytes", only by from, to, port'],
    say: (why: string) => why,
    fix: () => "correct what the sentence names",
    exitCode: EXIT.usage,
  },
});
