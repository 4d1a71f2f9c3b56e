import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import { announcedDataplane, type DataplaneAnnouncement } from "../api/protocol/agent-report.ts";
import type { Pod } from "../api/workload-objects.ts";

/** An agent that has not reported in this time may never: its pod is refused, or cannot start. */
const REPLACED_WITHIN_MS = 120_000;

/**
 * What the agent of each node announced last, also after its pod is gone. A report ends with its pod, but the node's connections do not: what
 * eBPF carries there, it still carries when the next agent starts.
 */
export interface LastAnnouncements {
  note(pod: KubeObject): void;
  /** By node, of the last two minutes. */
  recent(): ReadonlyMap<string, DataplaneAnnouncement>;
}

export function lastAnnouncements(now: () => number): LastAnnouncements {
  const last = new Map<string, { what: DataplaneAnnouncement; at: number }>();
  return {
    note(pod) {
      const node = (pod as Pod).spec?.nodeName;
      const what = isAgent(pod) ? announcedDataplane(pod.metadata.annotations) : undefined;
      if (node !== undefined && what !== undefined && what !== "unknown") last.set(node, { what, at: now() });
    },
    recent() {
      for (const [node, { at }] of last) if (now() - at > REPLACED_WITHIN_MS) last.delete(node);
      return new Map([...last].map(([node, { what }]) => [node, what]));
    },
  };
}

export function isAgent({ metadata }: KubeObject): boolean {
  const { node } = vendorNames.workloads;
  return (metadata.ownerReferences ?? []).some(({ kind, name }) => kind === "DaemonSet" && name === node);
}
