import { choice, flag, integer, object, setOf, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

const MODES = ["Never", "Always", "CrossSubnet"] as const;

export const ipPool = defineResource({
  noun: "ipPool",
  api: "v3",
  namespaced: false,
  description: "A prefix pods get addresses from, and how packets to them travel.",
  spec: object(
    "The pool.",
    {
      cidr: text("The prefix; it cannot be changed.", { minLength: 3, maxLength: 49 }),
      blockSize: integer("Prefix length of the blocks nodes get; it cannot be changed.", { minimum: 20, maximum: 128 }),
      vxlanMode: choice("When packets travel in VXLAN.", MODES),
      ipipMode: choice("When packets travel in IPIP; not with eBPF, and not together with VXLAN.", MODES),
      natOutgoing: flag("Whether traffic leaving the pools takes the node's address."),
      disabled: flag("Stops new addresses from this pool; those in use stay."),
      disableBGPExport: flag("Keeps the pool out of route announcements."),
      nodeSelector: text("Which nodes take addresses from this pool.", { minLength: 1 }),
      namespaceSelector: text("Which namespaces' pods take addresses from this pool."),
      allowedUses: setOf(
        "What the addresses may be used for.",
        choice("One use.", ["Workload", "Tunnel", "LoadBalancer"]),
        { maxItems: 3 },
      ),
      assignmentMode: choice("Whether pods get addresses on their own or only when they ask.", ["Automatic", "Manual"]),
    },
    ["cidr"],
  ),
  columns: [
    { name: "CIDR", type: "string", jsonPath: ".spec.cidr", description: "The prefix" },
    { name: "VXLAN", type: "string", jsonPath: ".spec.vxlanMode", description: "When packets travel in VXLAN" },
    {
      name: "NAT",
      type: "boolean",
      jsonPath: ".spec.natOutgoing",
      description: "Whether leaving traffic is translated",
    },
    { name: "Disabled", type: "boolean", jsonPath: ".spec.disabled", description: "Whether it gives no new addresses" },
    AGE,
    {
      name: "IPIP",
      type: "string",
      jsonPath: ".spec.ipipMode",
      description: "When packets travel in IPIP",
      priority: 1,
    },
    { name: "BlockSize", type: "integer", jsonPath: ".spec.blockSize", description: "Size of blocks", priority: 1 },
    { name: "Nodes", type: "string", jsonPath: ".spec.nodeSelector", description: "Which nodes use it", priority: 1 },
  ],
});

export type IPPool = ObjectOf<typeof ipPool>;
