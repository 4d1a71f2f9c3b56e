/** Which client stays with which backend, as service proxies note it: a list of the kernel's `recent` match, or a set, for every backend. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { ServiceBackend, ServicePort } from "../../calc/model.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import type { NftObject, NftPort } from "../../kernel/nft/nft-port.ts";
import { formatAddress, parseAddress } from "../../kit/ip.ts";
import { PROXY_TABLE } from "./proxy-chains.ts";
import { allBackends, backendChain, backendObject } from "./proxy-names.ts";

export interface Affinity {
  service: ServicePort;
  client: string;
  backend: ServiceBackend;
}

export interface AffinityPlace {
  kernel: Pick<Kernel, "nft" | "netns">;
  netns?: Netns;
}

/** Of the thread, which may be in another namespace for a moment. */
const LISTS = "/proc/thread-self/net/xt_recent";

interface Note {
  client: string;
  /** The more, the later; only to be compared with others of the same kind. */
  last: number;
}

/** Of services that want it. A client that is noted for two backends has the one it used last. */
export async function notedAffinities(place: AffinityPlace, services: Iterable<ServicePort>): Promise<Affinity[]> {
  return await withNft(place, async (nft) => {
    const newest = new Map<string, Affinity & Note>();
    for (const service of withAffinity(services)) {
      for (const backend of allBackends(service)) {
        const notes = listed(place, service, backend) ?? (await members(nft, service, backend));
        for (const note of notes) {
          const key = `${service.id} ${note.client}`;
          if ((newest.get(key)?.last ?? -1) < note.last) newest.set(key, { service, backend, ...note });
        }
      }
    }
    return [...newest.values()].map(({ service, client, backend }) => ({ service, client, backend }));
  });
}

/** As if the proxy had sent them there just now. What it has no rules for is not noted. */
export async function noteAffinities(place: AffinityPlace, affinities: readonly Affinity[]): Promise<void> {
  await withNft(place, async (nft) => {
    for (const { service, client, backend } of affinities) {
      const add = (path: string) => {
        writeFileSync(path, `+${client}\n`);
        return client;
      };
      if (atList(place, backendChain(service, backend), add)) continue;
      const set = `${familyOf(service)} ${PROXY_TABLE} ${backendObject("affinity", service, backend)}`;
      await nft.run(`add element ${set} { ${client} }`).catch(() => undefined);
    }
  });
}

function withAffinity(services: Iterable<ServicePort>): ServicePort[] {
  return [...services].filter(({ affinitySeconds }) => affinitySeconds > 0);
}

async function withNft<T>({ kernel, netns }: AffinityPlace, act: (nft: NftPort) => Promise<T>): Promise<T> {
  const nft = kernel.nft(netns);
  try {
    return await act(nft);
  } finally {
    nft.close();
  }
}

/** Undefined where there is no such list. */
function atList({ kernel, netns }: AffinityPlace, name: string, act: (path: string) => string): string | undefined {
  const path = `${LISTS}/${name}`;
  const there = () => (existsSync(path) ? act(path) : undefined);
  return netns ? kernel.netns.run(netns, there) : there();
}

/** Undefined where iptables has no such backend. */
function listed(place: AffinityPlace, service: ServicePort, backend: ServiceBackend): Note[] | undefined {
  const text = atList(place, backendChain(service, backend), (path) => readFileSync(path, "utf8"));
  return text === undefined
    ? undefined
    : [...text.matchAll(/^src=(\S+) .*?last_seen: (\d+)/gm)].flatMap(([, address = "", last]) => {
        // IPv6 is written with all its zeros there.
        const client = parseAddress(address);
        return client ? [{ client: formatAddress(client), last: Number(last) }] : [];
      });
}

async function members(nft: NftPort, service: ServicePort, backend: ServiceBackend): Promise<Note[]> {
  const set = `${familyOf(service)} ${PROXY_TABLE} ${backendObject("affinity", service, backend)}`;
  return (await nft.list(`list set ${set}`).catch((): NftObject[] => [])).flatMap((object) => {
    const elements = (object["set"] as { elem?: { elem?: { val?: string; expires?: number } }[] } | undefined)?.elem;
    return (elements ?? []).flatMap(({ elem }) => (elem?.val ? [{ client: elem.val, last: elem.expires ?? 0 }] : []));
  });
}

function familyOf({ family }: ServicePort): "ip" | "ip6" {
  return family === 4 ? "ip" : "ip6";
}
