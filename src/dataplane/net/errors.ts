import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  NET_INTERFACE_ABSENT: {
    means: "The route to a pod cannot be added because the pod's interface does not exist or is down.",
    example: ["10.244.1.7/32", "cali1234567890a"],
    say: (route: string, name: string) => `the route to ${route} waits for interface ${name}, which is absent or down`,
    fix: (route: string) =>
      `if it stays, delete the pod that has ${route.split("/")[0]}: it has no network since its node was cleaned`,
  },
  NET_OVERLAY_ABSENT: {
    means:
      "The route to another node's pods cannot be added because the overlay device does not exist yet. It is added when it does.",
    example: ["10.244.2.0/26"],
    say: (route: string) => `the route to ${route} waits for the overlay device`,
  },
  NET_ROUTE_TAKEN: {
    means: "A node has a route to pods that the agent did not add, and the agent does not replace it.",
    example: ["10.244.2.0/26"],
    say: (route: string) => `a route to ${route} exists that this agent did not add`,
    fix: (route: string) => `ip route delete ${route}; the agent then adds its own`,
  },
  NET_NOT_WRITTEN: {
    means: "A route, neighbour or device of a node could not be written. The agent tries again.",
    example: ["route 10.244.2.0/26", "network is unreachable"],
    say: (what: string, why: string) => `${what} could not be written: ${why}`,
  },
  NET_SOURCE_ABSENT: {
    means:
      "The address of deviceRouteSourceAddress, or of the field for IPv6, is none of the node's. Processes of the node reach its pods with the address that the kernel chooses.",
    example: ["192.0.2.99"],
    say: (address: string) => `${address} is no address of the node, so routes to its pods have no source address`,
    fix: () => "correct it in the DataplaneConfiguration node.NAME of the node, or add the address to the node",
  },
  NET_IPIP_ABSENT: {
    means:
      "A pool uses IPIP, and the kernel of a node has neither IPIP nor a module for it. The node does not reach pods of that pool on other nodes.",
    example: [],
    say: () => "the kernel has no IPIP: module ipip is missing",
    fix: () => "install the module ipip on the node, or convert the pool: vendorctl migrate encapsulation --to vxlan",
  },
  NET_OVERLAY_DIFFERS: {
    means: "The overlay device of a node has other settings than configured, and cannot be changed while it is in use.",
    example: ["vxlan.vendor", "VNI 4096", "VNI 4097"],
    say: (name: string, have: string, want: string) => `device ${name} is ${have}, and ${want} is needed`,
    fix: (name: string) => `drain the node, then ip link delete ${name}; replacing the device breaks connections`,
  },
});
