import type { CniResult } from "../../../api/protocol/cni.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
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
  /** Gives back what the plugin gave, and removes the namespace; of a node that is going too, nothing. */
  remove(): Promise<void>;
}

const LOOPBACK = 1;

export async function createSandbox(
  kernel: Kernel,
  machine: Machine,
  pod: Pod,
  /** Whether its node is there to stay. */
  stays: () => boolean,
): Promise<Sandbox> {
  const uid = pod.metadata.uid ?? "";
  const name = podNetns(uid);
  const onNode = `/run/netns/${name}`;
  const attachment: CniAttachment = { pod, containerId: name, netns: `/var${onNode}` };
  const made = await machine.run(["sh", "-ec", MAKE, onNode]);
  if (made.code !== 0) throw errors.NODE_DID_NOT_START(machine.spec.name, made.err.trim());
  const path = machine.path(onNode);
  const netns = kernel.netns.openPath(path);
  let result: CniResult | undefined;
  const remove = async () => {
    netns.close();
    await untilDone(() => removeFromNetwork(machine, attachment, result), stays);
    if (stays()) await machine.run(["sh", "-c", REMOVE, onNode]);
  };
  try {
    const links = kernel.netlink(netns);
    links.changeLink(LOOPBACK, { up: true });
    links.close();
    result = await addToNetwork(machine, attachment);
  } catch (error) {
    // What failed halfway is undone before the next try.
    await remove();
    throw error;
  }
  return { netns, path, podIPs: result.ips.map(({ address }) => address.split("/")[0] as string), remove };
}

const AGAIN_MS = 1_000;

/** As a kubelet: nothing is over before the plugin has said so, however often it must be asked. An agent that is down is back some time. */
export async function untilDone(act: () => Promise<void>, stays: () => boolean): Promise<void> {
  while (stays()) {
    try {
      await act();
      return;
    } catch {
      await new Promise((wake) => setTimeout(wake, AGAIN_MS).unref());
    }
  }
}

/** One that a killed predecessor left is not taken over: its state is unknown. */
const REMOVE = '[ ! -e "$0" ] || { umount "$0" 2>/dev/null || true; rm -f "$0"; }';
const MAKE = `${REMOVE}; : > "$0"; unshare --net="$0" true`;
