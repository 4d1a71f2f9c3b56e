import { embeddedFiles } from "../api/embedded-files.ts";
import { errors as containerErrors } from "./runtime/containerd/errors.ts";
import { errors } from "./runtime/netns/errors.ts";
import type { RealRuntime } from "./runtime/node-runtime.ts";

export type RuntimeChoice = "auto" | "paper" | RealRuntime;

/** What about a cluster cannot be had on real nodes. */
export interface NodeRequirements {
  runtime: RuntimeChoice;
  nodes: number;
  installed?: string;
  oldNodes?: number;
  windowsNodes?: number;
}

/** Each real node runs an agent of its own, and all of them share this machine. */
const MOST_REAL_NODES = 16;

/** Real nodes load the native koffi and run the programs of the image, and the self-contained file of a release has neither. */
const ONE_FILE = "this vendorctl is the self-contained file of a release; run it from a checkout or from the image";
const isSingleFile = () => embeddedFiles() !== undefined;

/** The runtime of nodes; and why it is simulated, if that was not requested. A requested runtime that is not possible is refused. */
export async function chooseRuntime(
  asked: NodeRequirements,
): Promise<{ runtime: "paper" | RealRuntime; why?: string }> {
  if (asked.runtime === "paper") return { runtime: "paper" };
  if (asked.runtime === "containerd") {
    const why = whySimulated(asked) ?? (await noContainersHere());
    if (why !== undefined) throw containerErrors.CONTAINERS_IMPOSSIBLE(why);
    return { runtime: "containerd" };
  }
  const why = whySimulated(asked) ?? (await notHere());
  if (why === undefined) return { runtime: "netns" };
  if (asked.runtime === "netns") throw errors.REAL_NODES_IMPOSSIBLE(why);
  return { runtime: "paper", why };
}

function whySimulated({ nodes, installed, oldNodes, windowsNodes }: NodeRequirements): string | undefined {
  if (installed !== undefined) return "programs of older versions can only be played";
  if (oldNodes) return "this machine's kernel is not too old for eBPF";
  if (windowsNodes) return "this machine does not run Windows";
  return nodes > MOST_REAL_NODES ? `more than ${MOST_REAL_NODES} real nodes are too many for one machine` : undefined;
}

async function notHere(): Promise<string | undefined> {
  if (isSingleFile()) return ONE_FILE;
  const { whyNotReal } = await import("./runtime/netns/why-not-real.ts");
  const { realKernel } = await import("../kernel/kernel.ts");
  return await whyNotReal(realKernel);
}

async function noContainersHere(): Promise<string | undefined> {
  if (isSingleFile()) return ONE_FILE;
  const { whyNoContainers } = await import("./runtime/containerd/why-no-containers.ts");
  const { realKernel } = await import("../kernel/kernel.ts");
  return await whyNoContainers(realKernel);
}

/** What real nodes of a cluster that is no more have left on this machine. Whether there was anything. */
export async function removeRealNodes(cluster: string): Promise<boolean> {
  if (process.platform !== "linux" || process.getuid?.() !== 0 || isSingleFile()) return false;
  const { removeLeftovers } = await import("./runtime/netns/leftovers.ts");
  const { realKernel } = await import("../kernel/kernel.ts");
  return await removeLeftovers(realKernel(), cluster);
}
