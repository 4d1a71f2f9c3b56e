import { shellDirectories } from "../../../agent/config.ts";
import { rescueNode, rescueOver } from "../../../agent/rescue-node.ts";
import { runRollbackWatchdog } from "../../../agent/rollback.ts";
import { realKernel } from "../../../kernel/kernel.ts";
import type { Session } from "../../session.ts";

/** For a node that is cut off: needs no API server and no agent, and does what it can. */
export async function nodeRescue(session: Session, { over }: { over?: true }): Promise<void> {
  const directories = shellDirectories();
  if (over) {
    const was = rescueOver(directories);
    session.out(was ? "eBPF may be used again on this node\n" : "this node was not rescued\n");
    return;
  }
  for (const line of await rescueNode(directories)) session.out(`${line}\n`);
  session.out("policy is not enforced on this node until its agent runs; Services need kube-proxy\n");
}

/** Started by the agent, and not for people: waits. */
export async function nodeWatchdog(session: Session): Promise<void> {
  const acted = await runRollbackWatchdog(realKernel(), shellDirectories(), session.signal);
  session.out(acted ? "the old data plane was restored\n" : "not needed\n");
}
