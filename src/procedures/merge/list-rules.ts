/** How two lists are compared: item by item under a key, as sets, or as one value. */
export type ListRule = { as: "map"; by: readonly string[] } | { as: "set" } | { as: "whole" };

const byName: ListRule = { as: "map", by: ["name"] };
const set: ListRule = { as: "set" };

/** Lists of Kubernetes' objects by the field that holds them, as its own patches merge them. */
const RULES: Readonly<Record<string, ListRule>> = {
  containers: byName,
  initContainers: byName,
  env: byName,
  volumes: byName,
  imagePullSecrets: byName,
  volumeMounts: { as: "map", by: ["mountPath"] },
  volumeDevices: { as: "map", by: ["devicePath"] },
  hostAliases: { as: "map", by: ["ip"] },
  ownerReferences: { as: "map", by: ["uid"] },
  versions: byName,
  tolerations: set,
  envFrom: set,
  rules: set,
  subjects: set,
  finalizers: set,
  add: set,
  drop: set,
  nameservers: set,
  searches: set,
  options: set,
  topologySpreadConstraints: set,
  // Of a CNI configuration.
  plugins: { as: "map", by: ["type"] },
};
/** The key of a port is its number; in a Service under another field name than in a container. */
const PORTS: readonly ListRule[] = [
  { as: "map", by: ["containerPort", "protocol"] },
  { as: "map", by: ["port", "protocol"] },
];

/** The rule for a list of this name that fits all of its versions: one whose items do not all have the key is one value. */
export function listRule(name: string, lists: readonly (readonly unknown[])[]): ListRule {
  const candidates = name === "ports" ? PORTS : [RULES[name] ?? { as: "whole" as const }];
  return (
    candidates.find((rule) => rule.as !== "map" || lists.every((list) => hasKeys(list, rule.by))) ?? { as: "whole" }
  );
}

function hasKeys(list: readonly unknown[], by: readonly string[]): boolean {
  const keys = list.map((item) => itemKey(item, by));
  return keys.every((key) => key !== undefined) && new Set(keys).size === keys.length;
}

/** `8080/TCP`; undefined for an item without the first key. */
export function itemKey(item: unknown, by: readonly string[]): string | undefined {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return undefined;
  const fields = item as Record<string, unknown>;
  if (fields[by[0] as string] === undefined) return undefined;
  return by.map((key) => String(fields[key] ?? (key === "protocol" ? "TCP" : ""))).join("/");
}
