import { createEbpfDataplane } from "../dataplane/ebpf/ebpf-dataplane.ts";
import { type ObjectName, objectBytes } from "../dataplane/ebpf/objects.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { AgentConfig } from "./config.ts";
import type { ModelTarget } from "./model-loop.ts";
import type { OpenPlane, PlaneKind } from "./plane-switch.ts";

/** Everything the model is carried out by on this node. */
export interface NodePlanes {
  open: Record<PlaneKind, OpenPlane>;
  /** Why eBPF cannot act here, found out by loading its programs; undefined: it can. */
  refusal: string | undefined;
  /** Routes, neighbours and the overlay's device, whichever plane filters. */
  network: NodeNetwork;
}

export interface NodeNetwork extends ModelTarget {
  close(): Promise<void>;
  /** Takes everything of ours off the node. */
  remove(): Promise<void>;
}

export const OVERLAY = "vxlan.vendor";
const OBJECTS: readonly ObjectName[] = ["workload", "host"];

export function ebpfPlane(kernel: Kernel, { directories }: Pick<AgentConfig, "directories">): OpenPlane {
  return async () => {
    // Where nobody mounted it yet, pins would be refused.
    kernel.mounts.ensure("bpf", bpfRoot(directories.bpf));
    return await createEbpfDataplane({ kernel, pinDirectory: directories.bpf, overlay: OVERLAY });
  };
}

/** By trying: versions lie. What is loaded here is let go at once. */
export function programsRefusal(kernel: Kernel): string | undefined {
  try {
    for (const name of OBJECTS) kernel.loadObject(objectBytes(name)).close();
    return undefined;
  } catch (error) {
    const [first = ""] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
    return first;
  }
}

/** Pins are in a directory of ours below the mount. */
function bpfRoot(pinDirectory: string): string {
  return pinDirectory.replace(/\/[^/]+$/, "");
}

export function openPlanes(kernel: Kernel, config: Pick<AgentConfig, "directories">): NodePlanes {
  const ebpf = ebpfPlane(kernel, config);
  const nothing = async () => ({ objects: [] });
  return {
    open: { ebpf, nft: ebpf },
    refusal: programsRefusal(kernel),
    network: {
      apply: nothing,
      resync: async () => {},
      sweep: async () => ({ removed: [] }),
      close: async () => {},
      remove: async () => {},
    },
  };
}
