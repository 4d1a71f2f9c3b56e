/**
 * What a policy is called. It is kept as `TIER.NAME`; the tier `default` may be left out, and is then left out in answers too.
 * Names the service gives to the orchestrator's own policies begin with one of the prefixes below and are kept as they are.
 */
const DEFAULT_TIER = "default";

const DEFAULT_PREFIX = `${DEFAULT_TIER}.`;

const ORCHESTRATOR_PREFIXES: Readonly<Record<string, string>> = {
  "knp.default.": DEFAULT_TIER,
  "kanp.adminnetworkpolicy.": "adminnetworkpolicy",
  "kbanp.baselineadminnetworkpolicy.": "baselineadminnetworkpolicy",
};

/** The tier a policy of the orchestrator is in; undefined for people's own policies. */
export function orchestratorTier(name: string): string | undefined {
  return Object.entries(ORCHESTRATOR_PREFIXES).find(([prefix]) => name.startsWith(prefix))?.[1];
}

export function storedPolicyName(name: string): string {
  return name === "" || name.includes(".") ? name : `${DEFAULT_PREFIX}${name}`;
}

export function servedPolicyName(stored: string): string {
  const rest = stored.slice(DEFAULT_PREFIX.length);
  return stored.startsWith(DEFAULT_PREFIX) && !rest.includes(".") ? rest : stored;
}

/** Whether the writer named the default tier, which is optional; it is then kept, so that files and cluster agree. */
export function spellsOutDefault(name: string): boolean {
  return servedPolicyName(name) !== name;
}

/** The tier a name says; the default one where it says none. */
export function tierOf(name: string): string {
  const orchestrators = orchestratorTier(name);
  if (orchestrators !== undefined) return orchestrators;
  const dot = name.indexOf(".");
  return dot < 0 ? DEFAULT_TIER : name.slice(0, dot);
}
