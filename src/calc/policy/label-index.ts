import { DERIVED_LABELS } from "../../api/resources/derived-labels.ts";
import { matchesExpression, type SelectorExpression } from "../../api/schema/selector-expression.ts";
import { orMake } from "../or-make.ts";
import { labelRestrictions } from "./label-restrictions.ts";

type Labels = Readonly<Record<string, string>>;

/**
 * Which labelled items match which selectors, kept up to date. Neither side is ever walked whole for one change: what a selector must have
 * (one label, better one label with one of some values) says where it is filed, and the labels of an item say where to look.
 */
export class LabelIndex {
  readonly #items = new Map<string, { labels: Labels; matches: Set<string> }>();
  readonly #selectors = new Map<string, { expression: SelectorExpression; matches: Set<string>; filed: string[] }>();
  /** Items by `label` and by `label=value`. */
  readonly #itemsBy = new Map<string, Set<string>>();
  /** Selectors by the one thing they must have; those that need nothing under the empty text. */
  readonly #selectorsBy = new Map<string, Set<string>>();
  readonly #changed: (selector: string, item: string, matches: boolean) => void;

  constructor(changed: (selector: string, item: string, matches: boolean) => void) {
    this.#changed = changed;
  }

  matchesOfItem(id: string): ReadonlySet<string> {
    return this.#items.get(id)?.matches ?? NO_MATCHES;
  }

  matchesOfSelector(id: string): ReadonlySet<string> {
    return this.#selectors.get(id)?.matches ?? NO_MATCHES;
  }

  setItem(id: string, labels: Labels): void {
    const before = this.#items.get(id);
    if (before && sameLabels(before.labels, labels)) return;
    if (before) this.#unfileItem(id, before.labels);
    const item = { labels, matches: before?.matches ?? new Set<string>() };
    this.#items.set(id, item);
    for (const key of keysOf(labels)) orMake(this.#itemsBy, key, () => new Set()).add(id);
    const candidates = new Set(item.matches);
    for (const key of ["", ...keysOf(labels)])
      for (const selector of this.#selectorsBy.get(key) ?? []) candidates.add(selector);
    for (const selector of candidates) this.#compare(selector, id);
  }

  removeItem(id: string): void {
    const item = this.#items.get(id);
    if (!item) return;
    for (const selector of [...item.matches]) this.#notify(selector, id, false);
    this.#unfileItem(id, item.labels);
    this.#items.delete(id);
  }

  setSelector(id: string, expression: SelectorExpression): void {
    this.#unfileSelector(id);
    const before = this.#selectors.get(id)?.matches ?? new Set<string>();
    const restricted = this.#placeFor(expression);
    const filed = restricted ?? [""];
    this.#selectors.set(id, { expression, matches: before, filed });
    for (const key of filed) orMake(this.#selectorsBy, key, () => new Set()).add(id);
    const candidates = new Set(before);
    if (restricted) for (const key of restricted) for (const item of this.#itemsBy.get(key) ?? []) candidates.add(item);
    else for (const item of this.#items.keys()) candidates.add(item);
    for (const item of candidates) this.#compare(id, item);
  }

  removeSelector(id: string): void {
    const selector = this.#selectors.get(id);
    if (!selector) return;
    for (const item of [...selector.matches]) this.#notify(id, item, false);
    this.#unfileSelector(id);
    this.#selectors.delete(id);
  }

  /** Where the fewest items and selectors meet, so that one busy label (the namespace, say) does not gather all of them. */
  #placeFor(expression: SelectorExpression): string[] | undefined {
    let best: string[] | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [label, { present, values }] of labelRestrictions(expression)) {
      if (!present) continue;
      const keys = values ? values.map((value) => withValue(label, value)) : [label];
      const crowd = keys.reduce((sum, key) => sum + this.#crowdAt(key), EVERYWHERE.has(label) ? CROWDED : 0);
      if (crowd >= fewest) continue;
      fewest = crowd;
      best = keys;
    }
    return best;
  }

  #crowdAt(key: string): number {
    return (this.#selectorsBy.get(key)?.size ?? 0) + (this.#itemsBy.get(key)?.size ?? 0);
  }

  #compare(selectorId: string, itemId: string): void {
    const selector = this.#selectors.get(selectorId);
    const item = this.#items.get(itemId);
    if (!selector || !item) return;
    const matches = matchesExpression(selector.expression, item.labels);
    if (matches !== item.matches.has(selectorId)) this.#notify(selectorId, itemId, matches);
  }

  #notify(selectorId: string, itemId: string, matches: boolean): void {
    const selector = this.#selectors.get(selectorId)!;
    const item = this.#items.get(itemId)!;
    if (matches) {
      selector.matches.add(itemId);
      item.matches.add(selectorId);
    } else {
      selector.matches.delete(itemId);
      item.matches.delete(selectorId);
    }
    this.#changed(selectorId, itemId, matches);
  }

  #unfileItem(id: string, labels: Labels): void {
    for (const key of keysOf(labels)) unfile(this.#itemsBy, key, id);
  }

  #unfileSelector(id: string): void {
    for (const key of this.#selectors.get(id)?.filed ?? []) unfile(this.#selectorsBy, key, id);
  }
}

/** Labels every pod has: crowded also while no pod is known yet. */
const EVERYWHERE: ReadonlySet<string> = new Set([DERIVED_LABELS.orchestrator]);
const CROWDED = 1_000_000;

const NO_MATCHES: ReadonlySet<string> = new Set();

function unfile(index: Map<string, Set<string>>, key: string, id: string): void {
  const ids = index.get(key);
  ids?.delete(id);
  if (ids?.size === 0) index.delete(key);
}

/** No label has a line break, so a pair cannot be taken for a label. */
function withValue(label: string, value: string): string {
  return `${label}\n${value}`;
}

function keysOf(labels: Labels): string[] {
  return Object.entries(labels).flatMap(([label, value]) => [label, withValue(label, value)]);
}

function sameLabels(a: Labels, b: Labels): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}
