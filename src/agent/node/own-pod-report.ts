import { AGENT_SAYS, DRAINING_EBPF, LEAVING_EBPF } from "../../api/agent-report.ts";
import { vendorNames } from "../../api/names.ts";
import type { Client } from "../../cluster/client.ts";
import { PODS } from "../../cluster/kinds.ts";
import type { Announcement } from "../plane-switch.ts";

/** What this agent knows about its node from having tried it. */
export interface OwnWord {
  /** Why the programs do not load; undefined: they do. */
  refusal: string | undefined;
  acting: Announcement | undefined;
  /** Whether services were reached by way of the programs, a moment ago. */
  proven: boolean;
  /** What is to be said of the service proxy's rules; undefined: nothing. */
  proxyRules: string | undefined;
  /** Maps that are full, by name. */
  fullMaps: readonly string[];
}

const { ebpf, standard } = vendorNames.dataplanes;
const WORDS: Record<Announcement, string> = {
  ebpf,
  nft: standard[0],
  leaving: LEAVING_EBPF,
  draining: DRAINING_EBPF,
};

/** Says it in the annotations of the agent's own pod: gone with the pod, and so never older than it. Only once anything acts. */
export async function reportOwnPod(
  client: Client,
  pod: { name: string; namespace: string },
  { refusal, acting, proven, proxyRules, fullMaps }: OwnWord,
): Promise<void> {
  if (pod.name === "") return;
  const annotations = {
    [AGENT_SAYS.programs]: refusal === undefined ? "loads" : `refused: ${refusal}`,
    [AGENT_SAYS.dataplane]: acting === undefined ? null : WORDS[acting],
    [AGENT_SAYS.serviceRouting]: proven && acting === "ebpf" ? "proven" : null,
    [AGENT_SAYS.serviceProxyRules]: proxyRules ?? null,
    [AGENT_SAYS.fullMaps]: fullMaps.length === 0 ? null : fullMaps.join(", "),
  };
  await client.patch(PODS, pod, { type: "merge", patch: { metadata: { annotations } } });
}
