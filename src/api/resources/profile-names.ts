/** Profiles every pod has by where it is: its namespace's and its service account's. Their names are the service's own. */
const NAMESPACE_PREFIX = "kns.";
const SERVICE_ACCOUNT_PREFIX = "ksa.";

/** Prefixes of the labels that endpoints inherit from a profile. */
export const NAMESPACE_LABEL_PREFIX = "pcns.";
export const SERVICE_ACCOUNT_LABEL_PREFIX = "pcsa.";
/** Under either prefix: the name itself, so that selectors can name one namespace or account. */
export const NAME_LABEL = "vendor.io/name";

export type ProfileSource =
  | { of: "namespace"; namespace: string }
  | { of: "serviceAccount"; namespace: string; name: string };

export function profileName(source: ProfileSource): string {
  return source.of === "namespace"
    ? `${NAMESPACE_PREFIX}${source.namespace}`
    : `${SERVICE_ACCOUNT_PREFIX}${source.namespace}.${source.name}`;
}

/** Whose profile this is by its name; undefined for profiles people made. A namespace has no dots, an account may. */
export function profileSource(name: string): ProfileSource | undefined {
  if (name.startsWith(NAMESPACE_PREFIX)) return { of: "namespace", namespace: name.slice(NAMESPACE_PREFIX.length) };
  const account = /^ksa\.([^.]+)\.(.+)$/.exec(name);
  return account ? { of: "serviceAccount", namespace: account[1] as string, name: account[2] as string } : undefined;
}
