import { isMap, type JsonMap, own } from "./json.ts";
import { itemElement } from "./list-items.ts";
import type { PathElement } from "./path-element.ts";
import { kindOf, type ListType, type MapType, memberType, type TypeNode } from "./type-node.ts";

/** Lays a configuration over a live value. Nothing is removed by this; where both speak of a leaf the configuration wins. */
export function merge(type: TypeNode, live: unknown, config: unknown): unknown {
  if (config === undefined) return live;
  if (live === undefined || live === config) return config;
  const kind = kindOf(type, config);
  if (kind === "map" && !type.map!.atomic) {
    const left = isMap(live) ? live : {};
    const right = isMap(config) ? config : {};
    if (Object.keys(left).length + Object.keys(right).length > 0) return mergeMembers(type.map!, left, right);
  } else if (kind === "list" && !type.list!.atomic) {
    const left: readonly unknown[] = Array.isArray(live) ? live : [];
    const right: readonly unknown[] = Array.isArray(config) ? config : [];
    if (left.length + right.length > 0) return mergeItems(type.list!, left, right);
  }
  return config;
}

function mergeMembers(map: MapType, live: JsonMap, config: JsonMap): JsonMap {
  const out: Record<string, unknown> = { ...live };
  for (const name of Object.keys(config)) {
    const merged = merge(memberType(map, name), own(live, name), config[name]);
    // A plain assignment of `__proto__` would change the map's prototype instead of adding a member.
    Object.defineProperty(out, name, { value: merged, enumerable: true, writable: true, configurable: true });
  }
  return out;
}

/**
 * The configuration decides the order of the items it names; live items it does not name stay next to
 * their former neighbours. Live duplicates cannot be distinguished, so a configuration that names them replaces them.
 */
function mergeItems(list: ListType, live: readonly unknown[], config: readonly unknown[]): unknown[] {
  const liveElements = live.map((item) => itemElement(list, item));
  const configElements = config.map((item) => itemElement(list, item));
  const named = new Set(configElements);
  const liveByElement = new Map<PathElement, unknown>();
  for (const [at, element] of liveElements.entries()) {
    liveByElement.set(element, liveByElement.has(element) ? null : live[at]);
  }
  const shared = configElements.filter((element) => liveByElement.has(element));
  const done = new Set<PathElement>();
  const out: unknown[] = [];
  let fromLive = 0;
  let fromConfig = 0;

  const takeNext = (): void => {
    const element = configElements[fromConfig]!;
    out.push(merge(list.element(), liveByElement.get(element), config[fromConfig]));
    done.add(element);
    fromConfig++;
    if (shared[0] === element) shared.shift();
  };

  while (fromLive < live.length || fromConfig < config.length) {
    const element = liveElements[fromLive];
    if (element === undefined) {
      takeNext();
    } else if (!named.has(element)) {
      out.push(live[fromLive++]);
    } else if (done.has(element)) {
      fromLive++;
      if (shared.length === 0 && fromConfig < config.length) takeNext();
    } else if (element === configElements[fromConfig]) {
      takeNext();
      fromLive++;
    } else if (shared.length > 0 && shared[0] !== element) {
      // It will come later, at the place the configuration gives it.
      fromLive++;
    } else {
      takeNext();
    }
  }
  return out;
}
