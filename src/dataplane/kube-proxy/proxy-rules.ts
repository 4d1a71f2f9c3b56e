import type { ServicePort } from "../../calc/model.ts";
import { openRuleSummary, type RuleSummary } from "../../kernel/nft/rule-summary.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { CodedError } from "../../kit/errors.ts";
import type { Log } from "../../kit/log.ts";
import { errors } from "./errors.ts";
import { jumpsInSaved } from "./legacy-rules.ts";
import { jumpsInNft } from "./nft-rules.ts";
import { type Affinity, noteAffinities, notedAffinities } from "./proxy-affinities.ts";
import { IPTABLES_TABLES, JUMPS, LAST_RULE, PROXY_TABLE, SIGNS } from "./proxy-chains.ts";
import { type ProxyRulesPlace, removeProxyRules } from "./remove-proxy-rules.ts";
import { commandsIn, type RunCommand } from "./run-command.ts";

export interface ProxyRulesState {
  /** The proxy's rules were there at the last look, and left there. */
  present: boolean;
  /** How often they came back after they had been removed. */
  returns: number;
  /** A running kube-proxy and our removal contradict each other; reported until no rule has returned for a while. */
  conflict: CodedError | undefined;
}

export interface FollowOptions {
  /** Whether existing rules are to be removed, or left alone. Read at every check. */
  removes(): boolean;
  onChange(state: ProxyRulesState): void;
  signal: AbortSignal;
}

const EVERY_MS = 2_000;
/** Twice in this time is no proxy on its way out. */
const WINDOW_MS = 600_000;
/** A living one looks every thirty seconds and writes what is missing: after three times that it is gone. */
const QUIET_MS = 90_000;
const RETURNS = 2;
const FAMILIES = [4, 6] as const;

/** What the agent asks of them; a test may bring its own. */
export type FollowedProxyRules = Pick<
  ServiceProxyRules,
  "present" | "serves" | "remove" | "affinities" | "noteAffinities" | "state" | "follow" | "close"
>;

/** The service proxy's rules on one node: whether there are any, removing them, and whether they come back. */
export class ServiceProxyRules {
  readonly #place: ProxyRulesPlace;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #glance: RuleSummary;
  readonly #run: RunCommand;
  #state: ProxyRulesState = { present: false, returns: 0, conflict: undefined };
  #onChange: FollowOptions["onChange"] = () => {};
  #returned: number[] = [];
  /** Rules that are there now came after they were gone. */
  #wereGone = false;
  #seen: string | undefined;
  #legacy: { sizes: string; present: boolean } | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ clock, log, ...place }: ProxyRulesPlace & { clock: Clock; log: Log }) {
    this.#place = place;
    this.#clock = clock;
    this.#log = log;
    this.#glance = openRuleSummary(place.netns);
    this.#run = commandsIn(place.kernel, place.netns);
  }

  state(): ProxyRulesState {
    return this.#state;
  }

  async present(): Promise<boolean> {
    return this.#inTurn(() => this.#isThere());
  }

  /** Whether they are written, and packets led into them, in all of these families: kube-proxy does one after the other, and rules may have been removed in between. */
  async serves(families: readonly (4 | 6)[]): Promise<boolean> {
    return this.#inTurn(async () => {
      for (const family of families) if (!(await this.#isWholeIn(family))) return false;
      return true;
    });
  }

  async remove(): Promise<void> {
    await this.#inTurn(() => this.#remove());
  }

  affinities(services: Iterable<ServicePort>): Promise<Affinity[]> {
    return this.#inTurn(() => notedAffinities(this.#place, services));
  }

  noteAffinities(affinities: readonly Affinity[]): Promise<void> {
    return this.#inTurn(() => noteAffinities(this.#place, affinities));
  }

  /**
   * Looks until stopped. A look costs a few questions of some microseconds, whatever rules there are: only where something changed since the
   * last one, the proxy's own chains are asked for, by name.
   */
  async follow({ removes, onChange, signal }: FollowOptions): Promise<void> {
    this.#onChange = onChange;
    while (!signal.aborted) {
      await this.observe(removes()).catch((error: unknown) => {
        this.#log.warn({ error }, "looking for kube-proxy's rules failed, retrying");
      });
      await sleep(this.#clock, EVERY_MS, signal);
    }
  }

  /** One look; what is found is dealt with when it resolves. */
  observe(remove: boolean): Promise<void> {
    return this.#inTurn(() => this.#look(remove));
  }

  close(): void {
    void this.#turn.finally(() => this.#glance.close());
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(act);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #look(remove: boolean): Promise<void> {
    const now = this.#fingerprint(remove);
    if (now === this.#seen) return this.#report({ ...this.#state, conflict: this.#conflict(remove) });
    const present = await this.#isThere();
    if (present && remove && (await this.#remove())) {
      // Our write changed the generation, and another program may have written meanwhile: check again.
      this.#seen = undefined;
      return;
    }
    this.#seen = now;
    this.#wereGone = remove;
    this.#report({ ...this.#state, present: present && !remove, conflict: this.#conflict(remove) });
  }

  /** Whether there was anything to remove: chains that foreign rules jump to stay, empty. */
  async #remove(): Promise<boolean> {
    const { places, chains, left } = await removeProxyRules(this.#place);
    if (places.length === 0) return false;
    const [tables, again] = [places.map(({ where }) => where), this.#wereGone];
    this.#log.info({ tables, chains, left, again }, "removed kube-proxy's rules");
    if (again) this.#returned.push(this.#clock.now());
    this.#wereGone = true;
    const returns = this.#state.returns + (again ? 1 : 0);
    this.#report({ present: false, returns, conflict: this.#conflict(true) });
    return true;
  }

  #conflict(remove: boolean): CodedError | undefined {
    if (!remove) this.#returned = [];
    this.#returned = this.#returned.filter((at) => this.#clock.now() - at < WINDOW_MS);
    const quiet = this.#clock.now() - (this.#returned.at(-1) ?? 0) > QUIET_MS;
    return this.#returned.length >= RETURNS && !quiet
      ? errors.SERVICE_PROXY_WRITES_AGAIN(this.#returned.length)
      : undefined;
  }

  #report(next: ProxyRulesState): void {
    const before = this.#state;
    this.#state = next;
    if (next.conflict && !before.conflict) {
      this.#log.error({ error: next.conflict, fix: next.conflict.fix }, "kube-proxy conflicts with this agent");
    }
    const same = next.conflict?.message === before.conflict?.message;
    if (!same || next.present !== before.present || next.returns !== before.returns) this.#onChange(next);
  }

  /** The same text as before: no rule was written, and the desired state is the same. */
  #fingerprint(remove: boolean): string {
    return JSON.stringify([this.#glance.generation(), this.#legacySizes(), remove]);
  }

  #legacySizes(): string {
    const sizes = FAMILIES.flatMap((family) => IPTABLES_TABLES.map((table) => this.#glance.legacySize(family, table)));
    return sizes.map((size) => size ?? "none").join(", ");
  }

  async #isThere(): Promise<boolean> {
    const inNftables = FAMILIES.some(
      (family) =>
        this.#glance.hasTable(family, PROXY_TABLE) ||
        SIGNS.some(({ table, chain }) => this.#glance.hasChain(family, table, chain)),
    );
    return inNftables || (await this.#isInLegacy());
  }

  async #isWholeIn(family: 4 | 6): Promise<boolean> {
    if (this.#glance.hasTable(family, PROXY_TABLE)) return true;
    return (await this.#isWholeInNft(family)) || (await this.#isWholeInLegacy(family));
  }

  async #isWholeInNft(family: 4 | 6): Promise<boolean> {
    if (this.#glance.chainUse(family, LAST_RULE.table, LAST_RULE.to) === 0) return false;
    const nft = this.#place.kernel.nft(this.#place.netns);
    try {
      for (const { table, from, to } of JUMPS) {
        const chain = `${family === 4 ? "ip" : "ip6"} ${table} ${from}`;
        if (!this.#glance.hasChain(family, table, from) || !(await jumpsInNft(nft, chain, to))) return false;
      }
      return true;
    } finally {
      nft.close();
    }
  }

  async #isWholeInLegacy(family: 4 | 6): Promise<boolean> {
    for (const table of ["nat", "filter"] as const) {
      const needed = [...JUMPS, LAST_RULE].filter((one) => one.table === table);
      const saved = await this.#savedLegacyTable(family, table);
      if (!needed.every(({ from, to }) => jumpsInSaved(saved, from, to))) return false;
    }
    return true;
  }

  /** By starting a program, so only where something changed. */
  async #isInLegacy(): Promise<boolean> {
    const sizes = this.#legacySizes();
    if (this.#legacy?.sizes !== sizes) this.#legacy = { sizes, present: await this.#savedInLegacy() };
    return this.#legacy.present;
  }

  async #savedInLegacy(): Promise<boolean> {
    for (const family of FAMILIES) {
      for (const sign of SIGNS) if (await this.#isSavedInLegacy(family, sign)) return true;
    }
    return false;
  }

  async #isSavedInLegacy(family: 4 | 6, { table, chain }: (typeof SIGNS)[number]): Promise<boolean> {
    return (await this.#savedLegacyTable(family, table)).includes(`\n:${chain} `);
  }

  /** Empty without such a table: asking for it would make it. */
  async #savedLegacyTable(family: 4 | 6, table: string): Promise<string> {
    if (!this.#glance.legacyTables(family).includes(table)) return "";
    return (await this.#run([`${family === 4 ? "iptables" : "ip6tables"}-legacy-save`, "-t", table])).out;
  }
}
