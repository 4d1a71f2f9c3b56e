import type { Command } from "commander";
import { PROPOSAL_KINDS } from "../../../api/protocol/flow-proposal.ts";
import { oneOf, someText, wholeNumber } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";
import { addProcedureFlags } from "../runs/procedure.flags.ts";

const SORTS = ["last-seen", "bytes", "packets", "connections", "from", "to"] as const;
const MEASURES = ["bytes", "packets", "connections", "flows"] as const;
const MOST = 100_000;

/** Flow logs: what is in them, and whether there are any. */
export function addFlowLogsCommands(program: Command, start: Start): void {
  const flows = document(program.command("flows"), {
    short: "Display flows: who spoke to whom, and which policy decided",
    long: "Display flows of flow logs: who spoke to whom, what was allowed and denied, and by which rule. A query is made of terms such as from:shop/*, to:pay/api, port:8000-8100, verdict:deny, since:15m; -TERM means not, and (A or B) either. The guide has all fields.",
    examples: [
      ["What was denied in the last 15 minutes", "vendorctl flows verdict:deny since:15m"],
      ["Follow what reaches one workload", "vendorctl flows to:pay/api -f"],
      ["Everything of one namespace, as CSV", "vendorctl flows -n shop -o csv"],
      ["The workloads that send most", "vendorctl flows top --by from"],
    ],
  });
  addQuery(flows)
    .option("-f, --follow", "print flows as they come, until interrupted")
    .option("--sort <order>", `${SORTS.join(", ")} (default: last-seen)`, oneOf("--sort", SORTS))
    .action(start(async () => (await import("./flows.run.ts")).listFlows));
  addQuery(
    document(flows.command("top"), {
      short: "Rank ends, ports, policies or other fields by their traffic",
      examples: [["Rules by the packets they denied", "vendorctl flows top verdict:deny --by rule --measure packets"]],
    }),
  )
    .option(
      "--by <field>",
      "a field of queries, such as from, to, namespace, port, policy",
      someText("--by", "a field"),
      "from",
    )
    .option("--measure <measure>", `${MEASURES.join(", ")} (default: bytes)`, oneOf("--measure", MEASURES))
    .action(start(async () => (await import("./flows.run.ts")).topFlows));
  document(flows.command("explain"), {
    short: "Explain why a flow was allowed or denied, and what would allow it",
    long: "Explain a flow by its ID, which vendorctl flows -o wide prints. Policy is calculated again as nodes do, from the objects as they are now: which policies were asked, which rule decided and where it is in the object, which rules nearly allow the flow, and what would. Policies that you may not get are not named.",
    examples: [
      ["Find the ID, and explain the flow", "vendorctl flows verdict:deny -o wide"],
      ["Why a flow was denied", "vendorctl flows explain 8ffb9dda64a12c2e6f5bb0c1"],
    ],
  })
    .argument("<id>", "ID of the flow")
    .action(start(async () => (await import("./explain-flow.run.ts")).explainFlow));
  addProcedureFlags(
    document(flows.command("enable"), {
      short: "Enable flow logs, and wait until they are available",
      examples: [["Enable the flow UI too", "vendorctl flows enable --ui"]],
    }),
  )
    .option("--ui", "enable the flow UI too")
    .action(start(async () => (await import("./enable-flows.run.ts")).enableFlows));
  addProcedureFlags(
    document(flows.command("disable"), {
      short: "Disable the flow UI, then flow logs",
      examples: [["Show what would be removed", "vendorctl plan flows disable"]],
    }),
  ).action(start(async () => (await import("./enable-flows.run.ts")).disableFlows));
  document(flows.command("propose"), {
    short: "Propose network policies that allow the flows of a query",
    long: "Propose network policies that allow the flows of a query: for each workload one, by labels that stay, with a comment over each rule that says how many connections it rests on. What no rule was made for is listed on stderr. Nothing is applied: read them, then pass them to kubectl apply -f -.",
    examples: [
      ["Policies for what a namespace received in the last hour", "vendorctl flows propose -n shop"],
      ["Look at them as a table first", "vendorctl flows propose -n shop -o table"],
      ["Apply them, once read", "vendorctl flows propose -n shop to:shop/web | kubectl apply -f -"],
      ["Try them first, without enforcing anything", "vendorctl flows propose -n shop --stage | kubectl apply -f -"],
    ],
  })
    .argument("[query...]", "terms of a query; none: everything that was allowed")
    .option("-A, --all-namespaces", "flows of all namespaces, or fail (default: of all that you may list)")
    .option("--egress", "rules for what workloads send, too")
    .option("--addresses", "rules for addresses outside and of nodes, as prefixes")
    .option("--stage", "propose them as staged policies: flows say what they would do, and nothing is enforced")
    .option("--api <api>", `${PROPOSAL_KINDS.join(" or ")} (default: kubernetes)`, oneOf("--api", PROPOSAL_KINDS))
    .action(start(async () => (await import("./propose-policies.run.ts")).proposePolicies));
  document(flows.command("preview"), {
    short: "Show what a change of policies would have done to recorded flows",
    long: "Ask recorded flows of the policies as they are and with a change: objects of files, new or in place of those that are there, and deletions. Nothing is changed. It takes the right to list the flows, and to make the change. Pairs of ends whose verdict would be another one are printed, those that would be denied first.",
    examples: [
      ["What a policy would deny", "vendorctl flows preview -f policy.yaml"],
      ["Of one workload, in the last 15 minutes", "vendorctl flows preview -f policy.yaml to:pay/api since:15m"],
      ["What a deletion would allow", "vendorctl flows preview -n pay --delete networkpolicy/lock"],
    ],
  })
    .argument("[query...]", "terms of a query; none: all flows")
    .option("-f, --filename <file>", "a file, a folder or - for standard input (repeatable)", repeated("--filename"))
    .option("--delete <kind/name>", "an object that would be deleted (repeatable)", repeated("--delete"))
    .option("-A, --all-namespaces", "flows of all namespaces, or fail (default: of all that you may list)")
    .action(start(async () => (await import("./preview-flows.run.ts")).previewFlows));
}

/** The page that shows the same. */
export function addUICommand(program: Command, start: Start): void {
  document(program.command("ui"), {
    short: "Open the flow UI, with the rights that you have",
    long: "Serve the flow UI on this machine until interrupted, and open it in the browser. It reads the cluster with your own rights: there is nothing to log in to, and no other user of this machine can use it.",
    examples: [
      ["Open the flow UI", "vendorctl ui"],
      ["Print its address only, on a port that is forwarded", "vendorctl ui --port 8081 --no-open"],
    ],
  })
    .option("--port <port>", "port on 127.0.0.1 (default: any free one)", wholeNumber("--port", 1, 65_535))
    .option("--no-open", "open no browser")
    .action(start(async () => (await import("./ui.run.ts")).openUI));
}

function repeated(flag: string): (text: string, before?: string[]) => string[] {
  const wanted = flag === "--delete" ? "KIND/NAME" : "the path of a file or folder";
  return (text, before = []) => [...before, someText(flag, wanted)(text)];
}

function addQuery(command: Command): Command {
  return command
    .argument("[query...]", "terms of a query; none: everything")
    .option("-A, --all-namespaces", "flows of all namespaces, or fail (default: of all that you may list)")
    .option("--limit <number>", "print at most so many (default: 100)", wholeNumber("--limit", 1, MOST));
}
