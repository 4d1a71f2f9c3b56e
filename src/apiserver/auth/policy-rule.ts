export interface PolicyRule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** What is asked: may this user do this? */
export type Attributes =
  | {
      resource: true;
      verb: string;
      group: string;
      version?: string;
      plural: string;
      subresource: string;
      namespace: string;
      name: string;
    }
  | { resource: false; verb: string; path: string };

/** Whether one rule allows what is asked. */
export function covers(rule: PolicyRule, asked: Attributes): boolean {
  if (!has(rule.verbs, asked.verb)) return false;
  if (!asked.resource) return (rule.nonResourceURLs ?? []).some((pattern) => coversPath(pattern, asked.path));
  if (!has(rule.apiGroups, asked.group)) return false;
  if (!coversResource(rule.resources ?? [], asked.plural, asked.subresource)) return false;
  return !rule.resourceNames?.length || rule.resourceNames.includes(asked.name);
}

export function has(list: readonly string[] | undefined, value: string): boolean {
  return list !== undefined && (list.includes("*") || list.includes(value));
}

export function coversResource(resources: readonly string[], plural: string, subresource: string): boolean {
  const full = subresource === "" ? plural : `${plural}/${subresource}`;
  return resources.some((one) => one === "*" || one === full || (subresource !== "" && one === `*/${subresource}`));
}

export function coversPath(pattern: string, path: string): boolean {
  if (pattern === "*" || pattern === path) return true;
  return pattern.endsWith("*") && path.startsWith(pattern.slice(0, -1));
}
