/** `spec.vendorNetwork.ipPools[0].cidr`, as people write it. */
export function parsePath(text: string): (string | number)[] | undefined {
  if (!/^[A-Za-z_][\w-]*(\[\d{1,3}\])*(\.[A-Za-z_][\w-]*(\[\d{1,3}\])*)*$/.test(text)) return undefined;
  return [...text.matchAll(/([A-Za-z_][\w-]*)|\[(\d+)\]/g)].map(([, key, index]) => key ?? Number(index));
}

export function printPath(path: readonly (string | number)[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`))
    .join("")
    .slice(1);
}
