import { contains, parseAddress, parseCidr } from "../../kit/ip.ts";

/** Ranges that mean something to a machine or a link itself. No pod has one, and no Service may take or lead to one. */
const SPECIAL: readonly [cidr: string, what: string][] = [
  ["0.0.0.0/8", "an unspecified address"],
  ["127.0.0.0/8", "a loopback address"],
  ["169.254.0.0/16", "a link-local address"],
  ["224.0.0.0/4", "a multicast address"],
  ["255.255.255.255/32", "the broadcast address"],
  ["::/128", "an unspecified address"],
  ["::1/128", "a loopback address"],
  // Sockets take them for IPv4 addresses, the rules of the IPv6 family do not.
  ["::ffff:0:0/96", "an IPv4-mapped address"],
  ["fe80::/10", "a link-local address"],
  ["ff00::/8", "a multicast address"],
];

/** Where clouds hand out credentials of the machine; those on 169.254.0.0/16 are link-local already. */
const METADATA: readonly string[] = ["100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"];

const RANGES = SPECIAL.flatMap(([text, what]) => {
  const cidr = parseCidr(text);
  return cidr ? [{ cidr, what }] : [];
});

/** What a special address is, as in "ADDRESS is a loopback address"; undefined for ordinary ones. What is no address is special, too. */
export function specialAddress(text: string): string | undefined {
  const address = parseAddress(text);
  if (!address) return "not an address";
  return RANGES.find(({ cidr }) => contains(cidr, address))?.what;
}

/** As `specialAddress`, and the clouds' metadata services: for claims of an address, not for packets that go there. */
export function unclaimableAddress(text: string): string | undefined {
  return METADATA.includes(text) ? "a cloud's metadata service" : specialAddress(text);
}
