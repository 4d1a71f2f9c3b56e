import { openRuleGlance, type RuleGlance } from "../../kernel/rule-glance.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { CodedError } from "../../kit/errors.ts";
import type { Log } from "../../kit/log.ts";
import { errors } from "./errors.ts";
import { IPTABLES_TABLES, PROXY_TABLE, SIGNS } from "./proxy-chains.ts";
import { type ProxyRulesPlace, type RemovedRules, removeProxyRules } from "./remove-proxy-rules.ts";
import { commandsIn, type RunCommand } from "./run-command.ts";

export interface ProxyRulesState {
  /** The proxy's rules were there at the last look, and left there. */
  present: boolean;
  /** How often they came back after they had been removed. */
  returns: number;
  /** A living proxy and our removing contradict each other; told until it has been quiet for a while. */
  conflict: CodedError | undefined;
}

export interface WatchProxyRulesOptions extends ProxyRulesPlace {
  clock: Clock;
  log: Log;
  /** Whether rules that are there are to be removed, or left alone and worked beside. Asked at every look. */
  cleanup(): boolean;
  onChange?(state: ProxyRulesState): void;
  /** Each time something was removed. */
  onRemoved?(removed: RemovedRules): void;
}

export interface ProxyRulesWatch {
  state(): ProxyRulesState;
  /** Looks now; resolves when what was found is dealt with. */
  look(): Promise<void>;
  stop(): Promise<void>;
}

const EVERY_MS = 2_000;
/** Twice in this time is no proxy on its way out: it looks every thirty seconds, and writes what is missing. */
const WINDOW_MS = 600_000;
const RETURNS = 2;

/**
 * Sees rules of a service proxy come back. A look costs a few questions of some microseconds, whatever rules there are: only where
 * something changed since the last one, the proxy's own chains are asked for, by name.
 */
export function watchProxyRules(options: WatchProxyRulesOptions): ProxyRulesWatch {
  const { kernel, netns, clock, log, cleanup } = options;
  const glance = openRuleGlance(netns);
  const run = commandsIn(kernel, netns);
  const stopping = new AbortController();
  let state: ProxyRulesState = { present: false, returns: 0, conflict: undefined };
  let returned: number[] = [];
  let wasRemoved = false;
  let seen: string | undefined;
  let turn: Promise<void> = Promise.resolve();

  const tell = (next: ProxyRulesState): void => {
    const changed = next.present !== state.present || next.returns !== state.returns;
    const conflicts = next.conflict?.message !== state.conflict?.message;
    if (next.conflict && !state.conflict) log.warn({ error: next.conflict, fix: next.conflict.fix }, "conflict");
    state = next;
    if (changed || conflicts) options.onChange?.(state);
  };
  const conflictNow = (): CodedError | undefined => {
    returned = returned.filter((at) => clock.now() - at < WINDOW_MS);
    return returned.length >= RETURNS ? errors.SERVICE_PROXY_WRITES_AGAIN(returned.length) : undefined;
  };
  /** Whether there was anything to remove: chains that somebody else leads into stay, empty. */
  const removeAgain = async (): Promise<boolean> => {
    const removed = await removeProxyRules(options);
    if (removed.places.length === 0) return false;
    options.onRemoved?.(removed);
    log.info({ tables: removed.places.map(({ where }) => where), chains: removed.chains }, "removed the proxy's rules");
    if (wasRemoved) returned.push(clock.now());
    tell({ present: false, returns: state.returns + (wasRemoved ? 1 : 0), conflict: conflictNow() });
    wasRemoved = true;
    return true;
  };
  const look = async (): Promise<void> => {
    const remove = cleanup();
    const now = fingerprint(glance, remove);
    if (now === seen) return tell({ ...state, conflict: remove ? conflictNow() : undefined });
    const present = await isThere(glance, run);
    if (present && remove && (await removeAgain())) {
      // What we did changed it, and somebody may have written meanwhile: another look.
      seen = undefined;
      return;
    }
    seen = now;
    tell({ ...state, present: present && !remove, conflict: remove ? conflictNow() : undefined });
  };
  const lookInTurn = (): Promise<void> => {
    turn = turn.then(look).catch((error: unknown) => {
      log.warn({ error }, "looking for the service proxy's rules did not go well, will be tried again");
    });
    return turn;
  };
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await lookInTurn();
      await sleep(clock, EVERY_MS, stopping.signal);
    }
  };
  const done = loop();
  return {
    state: () => state,
    look: lookInTurn,
    async stop() {
      stopping.abort();
      await done;
      await turn;
      glance.close();
    },
  };
}

/** The same text as before: nobody wrote anything, and nothing else is wanted. */
function fingerprint(glance: RuleGlance, cleanup: boolean): string {
  const legacy = FAMILIES.flatMap((family) => IPTABLES_TABLES.map((table) => glance.legacySize(family, table)));
  return JSON.stringify([glance.generation(), legacy, cleanup]);
}

const FAMILIES = [4, 6] as const;

async function isThere(glance: RuleGlance, run: RunCommand): Promise<boolean> {
  for (const family of FAMILIES) {
    if (glance.hasTable(family, PROXY_TABLE)) return true;
    if (SIGNS.some(({ table, chain }) => glance.hasChain(family, table, chain))) return true;
    const legacy = glance.legacyTables(family);
    for (const { table, chain } of SIGNS) {
      if (!legacy.includes(table)) continue;
      const { out } = await run([`${family === 4 ? "iptables" : "ip6tables"}-legacy-save`, "-t", table]);
      if (out.includes(`\n:${chain} `)) return true;
    }
  }
  return false;
}
