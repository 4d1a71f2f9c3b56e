import { vendorNames } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import type { FlowProposal } from "../../../api/protocol/flow-proposal.ts";

/** Only proposals of Kubernetes' kind have this group. */
const KUBERNETES_GROUP = "networking.k8s.io/";
/** Of what becomes true when policies are enforced. */
const ONCE_APPLIED = /^Once applied,/;
const EXISTS = /^NetworkPolicy (.*) exists: kubectl apply replaces its rules\.$/;

/** The same policies, to be tried before they are enforced. */
export function stagedProposal(proposal: FlowProposal): FlowProposal {
  return {
    ...proposal,
    policies: proposal.policies.map(({ object, rules }) => ({ object: stagedObject(object), rules })),
    notes: [
      ...proposal.notes.map(stagedNote),
      ...(proposal.policies.length > 0
        ? ["Nothing is enforced: vendorctl flows pending:deny shows what the staged policies would deny."]
        : []),
    ],
  };
}

function stagedObject({ apiVersion, metadata, ...rest }: KubeObject): KubeObject {
  const { kinds, groups } = vendorNames;
  const isKubernetes = apiVersion.startsWith(KUBERNETES_GROUP);
  const { kind } = isKubernetes ? kinds.stagedKubernetesNetworkPolicy : kinds.stagedNetworkPolicy;
  const spec = { stagedAction: "Set", ...(rest["spec"] as object) };
  return { apiVersion: groupVersion(groups.served), kind, metadata, spec };
}

function stagedNote(note: string): string {
  return note
    .replace(ONCE_APPLIED, "Once enforced,")
    .replace(EXISTS, "NetworkPolicy $1 exists: the staged policy is in its place in what flows say.");
}
