import type { Command } from "commander";
import { oneOf } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";

export function addNodeCommand(program: Command, start: Start): void {
  document(program.command("node"), {
    short: "Show what one node does: the BGP sessions of its agent",
    long: "Show the BGP sessions of one node, as its routing daemon has them now: type, state, since when, and why one is not established. A NodeStatus asks the agent, and is deleted again.",
    examples: [
      ["Show the BGP sessions of a node", "vendorctl node node-1 bgp"],
      ["The same with the daemon's version and times", "vendorctl node node-1 bgp -o yaml"],
    ],
  })
    .argument("<name>", "name of the node")
    .argument("<what>", "bgp", oneOf("the table", ["bgp"]))
    .action(start(async () => (await import("./node-bgp.run.ts")).nodeBgpSessions));
}
