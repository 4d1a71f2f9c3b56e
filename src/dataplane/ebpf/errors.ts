import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  EBPF_BAD_MODEL: {
    args: ["what"],
    say: (what: string) => `the model cannot be put into effect: ${what}`,
    fix: () => "this is a fault of the service, please report it",
  },
  EBPF_POLICY_TOO_LARGE: {
    args: ["who", "parts", "most"],
    say: (who: string, parts: number, most: number) =>
      `the policy of ${who} needs ${parts} programs, and a packet can pass through ${most}`,
    fix: () => "put its addresses into a NetworkSet and select that, instead of one rule for each",
  },
  EBPF_NO_SLOTS: {
    args: ["most"],
    say: (most: number) => `all ${most} places for policy programs are taken`,
    fix: () => "fewer pods, or fewer different policies, on this node",
  },
  EBPF_INTERFACE_ABSENT: {
    args: ["name"],
    say: (name: string) => `there is no interface ${name} on this node`,
    fix: () => "if it stays, delete the pod it belongs to: it has no network since its node was cleaned",
  },
  EBPF_INTERFACE_NOT_ETHERNET: {
    args: ["name", "address"],
    say: (name: string, address: string) =>
      `the interface ${name} has the node's address ${address} and no Ethernet headers: eBPF serves nothing there`,
    fix: () => "give the Node an InternalIP of an Ethernet interface, or use the nftables data plane on this node",
  },
  EBPF_KERNEL_LACKS: {
    args: ["what"],
    say: (what: string) => `this kernel has no ${what}, which this needs`,
    fix: () => "use the nftables data plane on this node, or a newer kernel: 5.10 has everything",
  },
  EBPF_KERNEL_REFUSES: {
    args: ["what"],
    say: (what: string) => `the kernel refused ${what}`,
    fix: () => "vendorctl check --for switch",
  },
  SERVICE_ADDRESS_TAKEN: {
    args: ["id", "address", "winner"],
    say: (id: string, address: string, winner: string) => `${id} does not answer on ${address}: ${winner} does`,
    fix: () => "give one of the two services another address",
  },
  SERVICE_MAP_FULL: {
    args: ["id", "map", "most"],
    say: (id: string, map: string, most: number) =>
      `${id} does not fit: all ${most} entries of the map ${map} are taken`,
    fix: () => "fewer services or backends in the cluster",
  },
});
