import { shellDirectories, shellKubeletDir } from "../../../agent/config.ts";
import { agentStopped, removeFromNode } from "../../../agent/remove-from-node.ts";
import { readInstallConfig } from "../../../cni/config.ts";
import { cniFiles, uninstallCni } from "../../../cni/install.ts";
import { errors } from "../../errors.ts";
import type { Session } from "../../session.ts";

/** Removes everything of the service from this node. Its agent must not run: it would restore all of it. */
export async function nodeRemove(session: Session, { yes, wait }: { yes?: true; wait: number }): Promise<void> {
  if (!yes) throw errors.USAGE("this removes the network of this node's pods", "add --yes");
  const config = readInstallConfig();
  const directories = shellDirectories();
  await agentStopped(directories, { waitMs: wait * 1000, signal: session.signal });
  const plugin = uninstallCni(config);
  const removed = await removeFromNode(directories, { cniFiles: cniFiles(config), kubeletDir: shellKubeletDir() });
  for (const line of [...plugin, ...removed]) session.out(`removed ${line}\n`);
  session.out("nothing of the service is left on this node\n");
}
