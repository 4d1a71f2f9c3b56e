import type { CniResult } from "../../../api/cni.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns-port.ts";
import type { Pod } from "../../controllers/workload-types.ts";
import { addToNetwork, type CniAttachment, removeFromNetwork } from "./cni-runtime.ts";
import { errors } from "./errors.ts";
import type { Machine } from "./machine.ts";
import { podNetns } from "./places.ts";

/** A pod's network namespace, connected by the node's own plugin. */
export interface Sandbox {
  readonly netns: Netns;
  /** Where it is for us. */
  readonly path: string;
  readonly podIPs: readonly string[];
  /** Gives back what the plugin gave, and removes the namespace. Without `network` the plugin is not called: its node is going too. */
  remove(network: boolean): Promise<void>;
}

const LOOPBACK = 1;

export async function createSandbox(kernel: Kernel, machine: Machine, pod: Pod): Promise<Sandbox> {
  const uid = pod.metadata.uid ?? "";
  const name = podNetns(uid);
  const onNode = `/run/netns/${name}`;
  const attachment: CniAttachment = { pod, containerId: name, netns: `/var${onNode}` };
  const made = await machine.run(["sh", "-ec", MAKE, onNode]);
  if (made.code !== 0) throw errors.NODE_DID_NOT_START(machine.spec.name, made.err.trim());
  const path = machine.path(onNode);
  const netns = kernel.netns.openPath(path);
  let result: CniResult | undefined;
  const remove = async (network: boolean) => {
    netns.close();
    try {
      if (network) await removeFromNetwork(machine, attachment, result);
    } finally {
      await machine.run(["sh", "-c", REMOVE, onNode]);
    }
  };
  try {
    const links = kernel.netlink(netns);
    links.changeLink(LOOPBACK, { up: true });
    links.close();
    result = await addToNetwork(machine, attachment);
  } catch (error) {
    // What failed halfway is taken back before anybody tries again; that this fails too is no news.
    await remove(true).catch(() => undefined);
    throw error;
  }
  return { netns, path, podIPs: result.ips.map(({ address }) => address.split("/")[0] as string), remove };
}

/** One that a killed predecessor left is not taken over: nobody knows how far it got. */
const REMOVE = 'umount "$0" 2>/dev/null || true; rm -f "$0"';
const MAKE = `${REMOVE}; touch "$0"; unshare --net="$0" true`;
