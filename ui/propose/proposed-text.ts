import type { FlowProposal } from "../../src/api/protocol/flow-proposal.ts";
import { policyText } from "../../src/flows/propose/policy-text.ts";

interface ProposedDocument {
  /** NAMESPACE/NAME */
  name: string;
  text: string;
}

/** As vendorctl prints them: over each rule stands what it rests on. */
export function proposedDocuments({ policies }: FlowProposal): ProposedDocument[] {
  return policies.map((policy) => {
    const { namespace = "", name } = policy.object.metadata;
    return { name: `${namespace}/${name}`, text: policyText(policy) };
  });
}

export function proposedText(proposal: FlowProposal): string {
  return proposedDocuments(proposal)
    .map(({ text }) => `---\n${text}`)
    .join("");
}
