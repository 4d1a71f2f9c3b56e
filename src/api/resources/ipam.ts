import { choice, flag, integer, list, mapOf, nullable, object, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

export const ipamBlock = defineResource({
  noun: "ipamBlock",
  api: "v3",
  namespaced: false,
  description: "One block of addresses and who has each; written by the service.",
  spec: object(
    "The block.",
    {
      cidr: text("The block's prefix."),
      affinity: text("Who the block belongs to, as host:NODE."),
      allocations: list(
        "One entry per address in order: the index of its attributes, or null where it is free.",
        nullable(integer("Index into attributes.", { minimum: 0 })),
      ),
      unallocated: list(
        "Free addresses as offsets, the one free for longest first.",
        integer("Offset.", { minimum: 0 }),
      ),
      attributes: list(
        "What is known of the allocations.",
        object("One allocation.", {
          handle_id: text("Handle of the allocation."),
          secondary: mapOf("Further facts, such as pod and namespace.", text("One fact.")),
        }),
      ),
      sequenceNumber: integer("Rises with every change.", { minimum: 0, format: "int64" }),
      sequenceNumberForAllocation: mapOf("Sequence number at which each address was given out.", {
        type: "integer",
        description: "Sequence number.",
        format: "int64",
      }),
      deleted: flag("Whether the block is being removed."),
    },
    ["cidr", "allocations", "unallocated", "attributes"],
  ),
  columns: [
    { name: "CIDR", type: "string", jsonPath: ".spec.cidr", description: "The block" },
    { name: "Affinity", type: "string", jsonPath: ".spec.affinity", description: "Who it belongs to" },
    AGE,
  ],
});

export const blockAffinity = defineResource({
  noun: "blockAffinity",
  api: "v3",
  namespaced: false,
  description: "Says that a block belongs to a node; written by the service.",
  spec: object(
    "The claim.",
    {
      state: choice("How far the claim is.", ["confirmed", "pending", "pendingDeletion"]),
      node: text("The node."),
      type: choice("What the block belongs to.", ["host", "virtual"]),
      cidr: text("The block's prefix."),
      deleted: flag("Whether the claim is being removed."),
    },
    ["state", "node", "cidr"],
  ),
  columns: [
    { name: "Node", type: "string", jsonPath: ".spec.node", description: "The node" },
    { name: "CIDR", type: "string", jsonPath: ".spec.cidr", description: "The block" },
    { name: "State", type: "string", jsonPath: ".spec.state", description: "How far the claim is" },
    AGE,
  ],
});

export const ipamHandle = defineResource({
  noun: "ipamHandle",
  api: "v3",
  namespaced: false,
  description:
    "All addresses given out under one handle, so that they can be released together; written by the service.",
  spec: object(
    "The handle.",
    {
      handleID: text("The handle."),
      block: mapOf("How many addresses of each block it has.", {
        type: "integer",
        description: "Number of addresses.",
      }),
      deleted: flag("Whether the handle is being removed."),
    },
    ["handleID", "block"],
  ),
  columns: [{ name: "Handle", type: "string", jsonPath: ".spec.handleID", description: "The handle" }, AGE],
});

export const ipamConfiguration = defineResource({
  noun: "ipamConfiguration",
  api: "v3",
  namespaced: false,
  description: "How blocks are given to nodes; there is one, named default.",
  spec: object("The rules.", {
    strictAffinity: flag("Whether a node uses only its own blocks."),
    autoAllocateBlocks: flag("Whether nodes take blocks as they need them."),
    maxBlocksPerHost: integer("Most blocks one node may have; 0 is no limit.", { minimum: 0 }),
  }),
  columns: [
    { name: "Strict", type: "boolean", jsonPath: ".spec.strictAffinity", description: "Own blocks only" },
    { name: "MaxBlocks", type: "integer", jsonPath: ".spec.maxBlocksPerHost", description: "Most blocks of a node" },
    AGE,
  ],
});

export type IPAMBlock = ObjectOf<typeof ipamBlock>;
