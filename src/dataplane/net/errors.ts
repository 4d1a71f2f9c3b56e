import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  NET_INTERFACE_ABSENT: {
    args: ["route", "name"],
    say: (route: string, name: string) => `the route to ${route} waits for interface ${name}, which is absent or down`,
  },
  NET_OVERLAY_ABSENT: {
    args: ["route"],
    say: (route: string) => `the route to ${route} waits for the overlay device`,
  },
  NET_ROUTE_TAKEN: {
    args: ["route"],
    say: (route: string) => `there is a route to ${route} already, which somebody else made`,
    fix: (route: string) => `ip route delete ${route}, if nobody needs it; it is written again at once`,
  },
  NET_NOT_WRITTEN: {
    args: ["what", "why"],
    say: (what: string, why: string) => `${what} could not be written: ${why}`,
  },
  NET_OVERLAY_DIFFERS: {
    args: ["name", "have", "want"],
    say: (name: string, have: string, want: string) => `device ${name} is ${have}, and ${want} is wanted`,
    fix: (name: string) =>
      `drain the node, then ip link delete ${name}: making it anew breaks connections, so it is not done by itself`,
  },
});
