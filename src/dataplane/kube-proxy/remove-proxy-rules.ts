import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import { openRuleSummary } from "../../kernel/nft/rule-summary.ts";
import type { ActualRules, Observed } from "./actual-rules.ts";
import { errors } from "./errors.ts";
import { findLegacyRules } from "./legacy-rules.ts";
import { findNftRules } from "./nft-rules.ts";
import { commandsIn } from "./run-command.ts";

/** The network namespace of the rules (default: this node's). */
export interface ProxyRulesPlace {
  kernel: Pick<Kernel, "nft" | "netns">;
  netns?: Netns;
  /** Only rules of this mode of kube-proxy (default: all modes). */
  mode?: ActualRules["mode"];
}

export interface RemovedRules {
  /** Table by table. */
  places: ActualRules[];
  /** All of them together. */
  jumps: number;
  chains: number;
  /** What could not be looked at, and why. */
  left: { where: string; why: string }[];
}

/** A proxy that writes at the same moment makes a transaction of ours fail; what it wrote is looked for again. */
const ATTEMPTS = 3;

/**
 * Takes the rules of the service proxy off this node, of both families, in whatever mode it wrote them, and nothing else: rules of the
 * kubelet and of others stay as they are. Each table changes in one step. Removing what is not there is fine.
 *
 * The caller keeps NAT registered for translated connections: with the last NAT chain the kernel stops translating.
 */
export async function removeProxyRules(place: ProxyRulesPlace): Promise<RemovedRules> {
  return looking(place, async (look) => {
    const places: ActualRules[] = [];
    for (let attempt = 1; ; attempt++) {
      const { found, left } = await look();
      const failed: { where: string; error: unknown }[] = [];
      for (const { remove, ...counted } of found.filter(isWorthIt)) {
        await remove().then(
          () => places.push(counted),
          (error: unknown) => failed.push({ where: counted.where, error }),
        );
      }
      const [first] = failed;
      if (!first) return { places, left, jumps: sum(places, "jumps"), chains: sum(places, "chains") };
      if (attempt < ATTEMPTS) continue;
      const why = first.error instanceof Error ? first.error.message : String(first.error);
      throw errors.SERVICE_PROXY_RULES_STAY(first.where, why).from(first.error);
    }
  });
}

async function looking<T>(
  { kernel, netns, mode }: ProxyRulesPlace,
  act: (look: () => Promise<Observed>) => Promise<T>,
): Promise<T> {
  const glance = openRuleSummary(netns);
  const nft = kernel.nft(netns);
  const run = commandsIn(kernel, netns);
  try {
    return await act(async () => {
      const looked = [await findNftRules(nft), await findLegacyRules(run, glance)];
      const found = looked.flatMap((one) => one.found).filter((one) => mode === undefined || one.mode === mode);
      return { found, left: looked.flatMap(({ left }) => left) };
    });
  } finally {
    nft.close();
    glance.close();
  }
}

/** A chain that others lead into, emptied once, is nothing more to do. */
function isWorthIt({ mode, jumps, chains }: ActualRules): boolean {
  return mode === "nftables" || jumps > 0 || chains > 0;
}

function sum(places: readonly ActualRules[], what: "jumps" | "chains"): number {
  return places.reduce((total, place) => total + place[what], 0);
}
