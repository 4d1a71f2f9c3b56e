/** IP protocols by the names rules use. */
const PROTOCOLS: Readonly<Record<string, number>> = { ICMP: 1, TCP: 6, UDP: 17, ICMPv6: 58, SCTP: 132, UDPLite: 136 };

/** The protocol's number, or undefined where it is none. A number may be written as text. */
export function protocolNumber(protocol: string | number | undefined): number | undefined {
  if (protocol === undefined) return undefined;
  const number = PROTOCOLS[protocol] ?? (/^\d{1,3}$/.test(String(protocol)) ? Number(protocol) : undefined);
  return number !== undefined && number >= 1 && number <= 255 ? number : undefined;
}

/** How protocols with ports are written in members of IP sets. */
export const PORT_PROTOCOLS: ReadonlyMap<number, string> = new Map([
  [6, "tcp"],
  [17, "udp"],
  [132, "sctp"],
]);
