import type { Ends, Malformed } from "./attempt.ts";
import { errors, protocols, tunnels } from "./malformed-carriers.ts";
import { fragmentsV4, fragmentsV6 } from "./malformed-fragments.ts";
import { checksums, cut, extensions, lengths, offloaded, optionsV4, tcpFlags } from "./malformed-headers.ts";
import { arps, destinations, linkLayer, neighbours, sources } from "./malformed-links.ts";

/** Every malformed or forged frame to one destination, of one family. Names are distinct. */
export function malformedFrames(ends: Ends): Malformed[] {
  const isV6 = ends.destination.includes(":");
  return [
    ...cut(ends),
    ...lengths(ends),
    ...checksums(ends),
    ...tcpFlags(ends),
    ...protocols(ends),
    ...sources(ends),
    ...destinations(ends),
    ...linkLayer(ends),
    ...errors(ends),
    ...tunnels(ends),
    ...offloaded(ends),
    ...(isV6
      ? [...extensions(ends), ...fragmentsV6(ends), ...neighbours(ends)]
      : [...optionsV4(ends), ...fragmentsV4(ends), ...arps(ends)]),
  ];
}
