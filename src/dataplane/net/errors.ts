import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  NET_INTERFACE_ABSENT: {
    args: ["route", "name"],
    say: (route: string, name: string) => `the route to ${route} waits for interface ${name}, which is absent or down`,
    fix: (route: string) =>
      `if it stays, delete the pod that has ${route.split("/")[0]}: it has no network since its node was cleaned`,
  },
  NET_OVERLAY_ABSENT: {
    args: ["route"],
    say: (route: string) => `the route to ${route} waits for the overlay device`,
  },
  NET_ROUTE_TAKEN: {
    args: ["route"],
    say: (route: string) => `a route to ${route} exists that this agent did not add`,
    fix: (route: string) => `ip route delete ${route}; the agent then adds its own`,
  },
  NET_NOT_WRITTEN: {
    args: ["what", "why"],
    say: (what: string, why: string) => `${what} could not be written: ${why}`,
  },
  NET_OVERLAY_DIFFERS: {
    args: ["name", "have", "want"],
    say: (name: string, have: string, want: string) => `device ${name} is ${have}, and ${want} is needed`,
    fix: (name: string) => `drain the node, then ip link delete ${name}; replacing the device breaks connections`,
  },
});
