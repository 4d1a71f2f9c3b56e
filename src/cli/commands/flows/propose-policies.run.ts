import type { FlowProposal, ProposalKind } from "../../../api/protocol/flow-proposal.ts";
import { connectionsText, policyText, timeText } from "../../../flows/propose/policy-text.ts";
import { printableLine } from "../../printable.ts";
import { print, type Table } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { type FlowFlags, queryOf, refuseIntent, type Words, withFlows } from "./flows.run.ts";
import { stagedProposal } from "./staged-proposal.ts";

interface ProposeFlags extends FlowFlags {
  egress?: true;
  addresses?: true;
  api?: ProposalKind;
  stage?: true;
}

export async function proposePolicies(session: Session, flags: ProposeFlags, words: Words): Promise<void> {
  refuseIntent(session);
  const query = queryOf(words);
  const yes = (flag: true | undefined) => (flag ? "true" : undefined);
  await withFlows(session, flags, async (flows, signal) => {
    const asked = { query, kind: flags.api, egress: yes(flags.egress), addresses: yes(flags.addresses) };
    const proposed = (await flows.get("proposals", asked, signal)) as FlowProposal;
    const proposal = flags.stage ? stagedProposal(proposed) : proposed;
    if (session.flags.output === "yaml") {
      for (const policy of proposal.policies) session.out(`---\n${policyText(policy)}`);
    } else await print(session, proposal, () => tableOf(proposal));
    if (session.flags.quiet) return;
    if (session.flags.output === "yaml" && proposal.policies.length === 0)
      session.err("there are no flows that a policy can be made of\n");
    for (const { what, why, connections } of proposal.left)
      session.err(`no rule for ${printableLine(what)}: ${printableLine(why)} (${connectionsText(connections)})\n`);
    for (const note of proposal.notes) session.err(`note: ${printableLine(note)}\n`);
  });
}

function tableOf({ policies }: FlowProposal): Table {
  return {
    columns: ["NAMESPACE", "POLICY", "RULE", "ALLOWS", "CONNECTIONS", "BYTES", "FIRST", "LAST"],
    rows: policies.flatMap(({ object: { metadata }, rules }) =>
      rules.map(({ path, text, connections, bytes, since, until }) => [
        ...[metadata.namespace ?? "", metadata.name, path.slice("spec.".length), text],
        ...[String(connections), String(bytes), timeText(since), timeText(until)],
      ]),
    ),
    empty: "there are no flows that a policy can be made of",
    optional: ["FIRST", "LAST", "BYTES"],
  };
}
