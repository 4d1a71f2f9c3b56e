import { isDeletion, PATCH, SET_ELEMENT_ORDER } from "./directives.ts";
import { isObject, type JsonObject } from "./json-value.ts";
import { malformed, unfit } from "./patch-error.ts";

/** The key of an item of a merging list: the value of its merge key, or the item itself. */
type KeyOf = (item: unknown) => unknown;

/** How the items of one list are merged: an item both sides have, and an item only the patch has. */
interface ItemRules {
  mergeKey: string | undefined;
  merge(original: JsonObject, patch: JsonObject): JsonObject;
  add(patch: JsonObject): unknown;
}

export function keyReader(mergeKey: string | undefined): KeyOf {
  if (mergeKey === undefined) return (item) => item;
  return (item) => {
    if (!isObject(item)) throw unfit(`expected an object with the merge key ${mergeKey}, got ${JSON.stringify(item)}`);
    if (!Object.hasOwn(item, mergeKey)) {
      throw unfit(`map: ${JSON.stringify(item)} does not contain declared merge key: ${mergeKey}`);
    }
    return item[mergeKey];
  };
}

/** Are these lists of objects? Throws where the items are not alike, since then they cannot be merged. */
function holdObjects(...lists: readonly (readonly unknown[])[]): boolean {
  const items = lists.flat(1);
  // flat(1) opens the lists given, not lists within them: those are what is looked for here.
  if (items.some(Array.isArray)) throw unfit("lists of lists are not supported in a strategic merge patch");
  const objects = items.filter(isObject).length;
  if (objects > 0 && objects < items.length)
    throw unfit(`list element types are not identical: ${JSON.stringify(items)}`);
  return objects > 0;
}

export function mergeLists(original: unknown[], patch: unknown[], rules: ItemRules): unknown[] {
  if (original.length === 0 && patch.length === 0) return original;
  if (!holdObjects(original, patch)) {
    return arrange([...new Set([...original, ...patch])], patch, original, keyReader(undefined));
  }
  if (rules.mergeKey === undefined) throw unfit("cannot merge lists of objects without a merge key");
  const keyOf = keyReader(rules.mergeKey);
  const { kept, changes } = obeyItemDirectives(original as JsonObject[], patch as JsonObject[], rules.mergeKey);
  return arrange(mergeItems(kept, changes, keyOf, rules), changes, kept, keyOf);
}

function mergeItems(kept: JsonObject[], changes: JsonObject[], keyOf: KeyOf, rules: ItemRules): unknown[] {
  const merged: unknown[] = [...kept];
  const positions = new Map<unknown, number>();
  for (const [i, item] of kept.entries()) {
    const key = item[rules.mergeKey!];
    if (!positions.has(key)) positions.set(key, i);
  }
  for (const change of changes) {
    const key = keyOf(change);
    const at = positions.get(key);
    if (at === undefined) positions.set(key, merged.push(rules.add(change)) - 1);
    else merged[at] = rules.merge(merged[at] as JsonObject, change);
  }
  return merged;
}

/** Items that are orders rather than content: `$patch: delete` takes out every item with its key, `$patch: replace` all of them. */
function obeyItemDirectives(original: JsonObject[], patch: JsonObject[], mergeKey: string) {
  const deleted = new Set<unknown>();
  const changes: JsonObject[] = [];
  let replace = false;
  for (const item of patch) {
    const directive = item[PATCH];
    if (directive === undefined) changes.push(item);
    else if (directive === "replace") replace = true;
    else if (directive !== "delete")
      throw malformed(`unknown ${PATCH} type ${JSON.stringify(directive)} in an item of a list`);
    else if (Object.hasOwn(item, mergeKey)) deleted.add(item[mergeKey]);
    else throw unfit(`${PATCH}: delete needs the merge key ${mergeKey} of the item to delete`);
  }
  if (replace) return { kept: changes, changes: [] };
  return { kept: original.filter((item) => !deleted.has(item[mergeKey])), changes };
}

/**
 * The order a server list stands in once a patch is merged: a newcomer takes the seat a deleted item left free, and one
 * without a seat has no place of its own. Kubernetes orders so, and clients see it.
 */
export function seatsAfter(live: unknown[], changes: unknown[], keyOf: KeyOf): unknown[] {
  const deletions = changes.filter(isDeletion);
  if (deletions.length === 0) return live;
  const deleted = new Set(deletions.map(keyOf));
  const kept = live.filter((item) => !deleted.has(keyOf(item)));
  const here = new Set(kept.map(keyOf));
  const newcomers = changes.filter((item) => !isOrder(item) && !here.has(keyOf(item)));
  return [...kept, ...newcomers.slice(0, live.length - kept.length)];
}

/** An item that says what to do rather than what to hold. */
export function isOrder(item: unknown): boolean {
  return isObject(item) && Object.hasOwn(item, PATCH);
}

/**
 * Orders a merged list. Items the client spoke of take the client's order; the others stay where they stood relative to
 * those, as far as both orders allow.
 */
export function arrange(merged: unknown[], clientOrder: unknown[], serverOrder: unknown[], keyOf: KeyOf): unknown[] {
  const spokenOf = new Set(clientOrder.map(keyOf));
  const clients = merged.filter((item) => spokenOf.has(keyOf(item)));
  const servers = merged.filter((item) => !spokenOf.has(keyOf(item)));
  return interleave(
    orderLike(servers, serverOrder, keyOf),
    orderLike(clients, clientOrder, keyOf),
    positionIn(serverOrder, keyOf),
  );
}

/** Items in the order of another list; what that list does not have comes after, and deletions last. */
function orderLike(items: readonly unknown[], order: readonly unknown[], keyOf: KeyOf): unknown[] {
  const position = positionIn(order, keyOf);
  const rank = (item: unknown) => (isDeletion(item) ? order.length + 1 : (position(item) ?? order.length));
  return items.toSorted((a, b) => rank(a) - rank(b));
}

function positionIn(order: readonly unknown[], keyOf: KeyOf): (item: unknown) => number | undefined {
  const positions = new Map<unknown, number>();
  for (const [i, item] of order.entries()) {
    const key = keyOf(item);
    if (!positions.has(key)) positions.set(key, i);
  }
  return (item) => positions.get(keyOf(item));
}

function interleave(
  servers: unknown[],
  clients: unknown[],
  position: (item: unknown) => number | undefined,
): unknown[] {
  const all: unknown[] = [];
  let next = 0;
  for (const client of clients) {
    const at = position(client) ?? -1;
    while (next < servers.length && (position(servers[next]) ?? Number.POSITIVE_INFINITY) < at)
      all.push(servers[next++]);
    all.push(client);
  }
  return [...all, ...servers.slice(next)];
}

/** A list in a patch must agree with the order the patch asks for: the same items in the same relative order. */
export function checkOrder(patch: unknown[], order: unknown[], keyOf: KeyOf): void {
  if (patch.length === 0 || order.length === 0) return;
  const content = patch.filter((item) => !isOrder(item));
  let matched = 0;
  for (const item of order) {
    if (matched < content.length && keyOf(content[matched]) === keyOf(item)) matched++;
  }
  if (matched < content.length) {
    throw unfit(
      `The order in patch list: ${JSON.stringify(patch)} doesn't match ${SET_ELEMENT_ORDER} list: ${JSON.stringify(order)}`,
    );
  }
}
