import { formatAddress, parseCidr } from "../../kit/ip.ts";
import type { PlatformProfileOptions } from "../platform-profile.ts";

/** What clients inside any cluster call the API server, and what this machine does. */
export function serverNamesFor(
  { apiAddress, dualStack }: PlatformProfileOptions,
  serviceCidrs: readonly string[],
  platform: readonly string[],
): string[] {
  const inside = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
  const serviceIPs = serviceCidrs.slice(0, dualStack ? 2 : 1).map((cidr) => addressIn(cidr, 1));
  return [...new Set([...platform, ...inside, ...serviceIPs, "localhost", "127.0.0.1", "::1", apiAddress.host])];
}

/** The nth address of a prefix: 1 is the API server's in a service range, 10 the name server's. */
export function addressIn(cidr: string, n: number): string {
  const parsed = parseCidr(cidr);
  if (!parsed) throw new TypeError(`"${cidr}" is not a prefix`);
  return formatAddress({ family: parsed.family, value: parsed.base + BigInt(n) });
}
