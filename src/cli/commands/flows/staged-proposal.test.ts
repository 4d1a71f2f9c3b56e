import { expect, it } from "vitest";
import type { FlowProposal } from "../../../api/protocol/flow-proposal.ts";
import { stagedProposal } from "./staged-proposal.ts";

const proposalOf = (apiVersion: string): FlowProposal => ({
  ...{ apiVersion: "flows.vendor.io/v1", kind: "FlowProposal", since: 0, until: 1, left: [] },
  policies: [
    {
      object: {
        ...{ apiVersion, kind: "NetworkPolicy", metadata: { name: "web-proposed", namespace: "shop" } },
        spec: { ingress: [] },
      },
      rules: [],
    },
  ],
  notes: [
    "Once applied, other traffic to the selected pods is denied, also such as was not seen in this time.",
    "NetworkPolicy shop/web-proposed exists: kubectl apply replaces its rules.",
  ],
});

it.each([
  ["networking.k8s.io/v1", "StagedKubernetesNetworkPolicy"],
  ["vendor.io/v3", "StagedNetworkPolicy"],
])("a proposal in %s is staged as %s, and its notes say when it denies", (apiVersion, kind) => {
  const { policies, notes } = stagedProposal(proposalOf(apiVersion));
  expect(policies.map(({ object }) => object)).toEqual([
    {
      ...{ apiVersion: "vendor.io/v3", kind, metadata: { name: "web-proposed", namespace: "shop" } },
      spec: { stagedAction: "Set", ingress: [] },
    },
  ]);
  expect(notes).toEqual([
    "Once enforced, other traffic to the selected pods is denied, also such as was not seen in this time.",
    "NetworkPolicy shop/web-proposed exists: the staged policy is in its place in what flows say.",
    "Nothing is enforced: vendorctl flows pending:deny shows what the staged policies would deny.",
  ]);
});
