import { Document, isNode } from "yaml";
import type { FlowProposal, ProposalKind, ProposedPolicy, ProposedRule } from "../../../api/protocol/flow-proposal.ts";
import { printable, printableLine } from "../../printable.ts";
import { print, type Table } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { type FlowFlags, queryOf, refuseIntent, type Words, withFlows } from "./flows.run.ts";

interface ProposeFlags extends FlowFlags {
  egress?: true;
  addresses?: true;
  api?: ProposalKind;
}

const BYTE_UNITS = ["bytes", "KB", "MB", "GB", "TB"];

export async function proposePolicies(session: Session, flags: ProposeFlags, words: Words): Promise<void> {
  refuseIntent(session);
  const query = queryOf(words);
  const yes = (flag: true | undefined) => (flag ? "true" : undefined);
  await withFlows(session, flags, async (flows, signal) => {
    const asked = { query, kind: flags.api, egress: yes(flags.egress), addresses: yes(flags.addresses) };
    const proposal = (await flows.get("proposals", asked, signal)) as FlowProposal;
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

/** As it is applied; over each rule stands what it rests on. */
function policyText({ object, rules }: ProposedPolicy): string {
  // kubectl reads YAML 1.1, in which a plain `Off` is a boolean.
  const document = new Document(object, { compat: "yaml-1.1", aliasDuplicateObjects: false });
  for (const rule of rules) {
    const node = document.getIn(pathOf(rule), true);
    if (isNode(node)) node.commentBefore = ` ${commentOf(rule)}`;
  }
  return printable(document.toString({ lineWidth: 0 }));
}

/** `spec.ingress[0]` */
function pathOf({ path }: ProposedRule): (string | number)[] {
  return path
    .split(/[.[\]]+/)
    .filter((part) => part !== "")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

function commentOf(rule: ProposedRule): string {
  return printableLine(`${rule.text}: ${restsOn(rule)}`);
}

function restsOn({ connections, packets, bytes, since, until, flows }: ProposedRule): string {
  if (flows === 0) return "not seen, and needed when answers are long";
  const counted = connections > 0 ? connectionsText(connections) : `${packets} packets and no connection`;
  return `${counted}, ${bytesText(bytes)}, ${timeText(since)} to ${timeText(until)}`;
}

function connectionsText(connections: number): string {
  return connections === 1 ? "1 connection" : `${connections} connections`;
}

function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1_000 && unit < BYTE_UNITS.length - 1) [value, unit] = [value / 1_000, unit + 1];
  return `${unit === 0 ? value : value.toPrecision(value < 10 ? 2 : 3)} ${BYTE_UNITS[unit]}`;
}

/** To the second, in UTC. */
function timeText(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+/, "");
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
