import { shellDirectories } from "../../../agent/config.ts";
import { removeFromNode } from "../../../agent/remove-from-node.ts";
import { readInstallConfig } from "../../../cni/config.ts";
import { uninstallCni } from "../../../cni/install.ts";
import { errors } from "../../errors.ts";
import type { Session } from "../../session.ts";

/** What an uninstalled service leaves nothing behind by. Its agent must not run: it would put all of it back. */
export async function nodeRemove(session: Session, { yes }: { yes?: true }): Promise<void> {
  if (!yes) throw errors.USAGE("this removes the network of this node's pods", "add --yes");
  const plugin = uninstallCni(readInstallConfig());
  const removed = await removeFromNode(shellDirectories());
  for (const line of [...plugin, ...removed]) session.out(`removed ${line}\n`);
}
