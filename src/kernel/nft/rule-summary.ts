/**
 * A look at packet rules that costs next to nothing, however many there are: whether anything changed, and whether a table or a chain is
 * there. Rules of nftables, which the newer iptables writes too, and tables of the older iptables.
 */
import { readFileSync } from "node:fs";
import { errnoOf } from "../errors.ts";
import { NetlinkSocket, PROTOCOL } from "../netlink/netlink.ts";
import { AF_INET, AF_INET6, readAttributes, text } from "../netlink/netlink-message.ts";
import { inside } from "../netns/netns.ts";
import type { Netns } from "../netns/netns-port.ts";
import { close, type Fd, getsockopt, socket } from "../sys.ts";

export interface RuleSummary {
  /** Another number after every transaction of nftables, whosever. */
  generation(): number;
  hasTable(family: 4 | 6, table: string): boolean;
  hasChain(family: 4 | 6, table: string, chain: string): boolean;
  /** How many rules a chain has, and how many jump to it, together; 0 without such a chain. */
  chainUse(family: 4 | 6, table: string, chain: string): number;
  /** Tables of the older iptables that are there. */
  legacyTables(family: 4 | 6): string[];
  /** How many entries such a table has, and their bytes: another text after almost every change. Undefined where there is none. */
  legacySize(family: 4 | 6, table: string): string | undefined;
  close(): void;
}

const SUBSYSTEM = 10 << 8;
const MESSAGE = { getTable: SUBSYSTEM | 1, getChain: SUBSYSTEM | 4, getGeneration: SUBSYSTEM | 16 } as const;
const GENERATION_ID = 1;
const TABLE_NAME = 1;
const CHAIN = { table: 1, name: 3, use: 6 } as const;
const LEGACY = {
  4: { domain: AF_INET, level: 0, names: "ip_tables_names" },
  6: { domain: AF_INET6, level: 41, names: "ip6_tables_names" },
} as const;
const GET_INFO = 64;
const INFO = { bytes: 84, entries: 76, size: 80 } as const;
const [SOCK_RAW, IPPROTO_RAW] = [3, 255];

/** Of a namespace, or of the one this thread is in. */
export function openRuleSummary(netns?: Netns): RuleSummary {
  const there = <T>(act: () => T): T => (netns ? inside(netns.fd, act) : act());
  const netlink = there(() => new NetlinkSocket(PROTOCOL.netfilter));
  const raw = new Map<4 | 6, Fd>();
  const rawSocket = (family: 4 | 6): Fd => {
    const fd = raw.get(family) ?? there(() => socket(LEGACY[family].domain, SOCK_RAW, IPPROTO_RAW));
    raw.set(family, fd);
    return fd;
  };
  const find = (what: string, type: number, family: 4 | 6, ...names: Buffer[]): Buffer | undefined => {
    try {
      return netlink.query(what, type, header(family), ...names).body;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
  };
  const findChain = (family: 4 | 6, table: string, chain: string) =>
    find("chain", MESSAGE.getChain, family, text(CHAIN.table, table), text(CHAIN.name, chain));
  const legacyTables = (family: 4 | 6): string[] => {
    try {
      const path = `/proc/thread-self/net/${LEGACY[family].names}`;
      return there(() => readFileSync(path, "utf8"))
        .split("\n")
        .filter((name) => name !== "");
    } catch {
      // A kernel without the older iptables has no such file.
      return [];
    }
  };
  return {
    generation: () => {
      const { body } = netlink.query("generation of rules", MESSAGE.getGeneration, header(4));
      return readAttributes(body, 4).get(GENERATION_ID)?.readUInt32BE() ?? 0;
    },
    hasTable: (family, table) => find("table", MESSAGE.getTable, family, text(TABLE_NAME, table)) !== undefined,
    hasChain: (family, table, chain) => findChain(family, table, chain) !== undefined,
    chainUse: (family, table, chain) => {
      const body = findChain(family, table, chain);
      return body ? (readAttributes(body, 4).get(CHAIN.use)?.readUInt32BE() ?? 0) : 0;
    },
    legacyTables,
    legacySize: (family, table) => {
      // Asking for a table that is not there would make it.
      if (!legacyTables(family).includes(table)) return undefined;
      const info = Buffer.alloc(INFO.bytes);
      info.write(table, 0, "latin1");
      if (getsockopt(rawSocket(family), LEGACY[family].level, GET_INFO, info) < 0) return undefined;
      return `${info.readUInt32LE(INFO.entries)} entries, ${info.readUInt32LE(INFO.size)} bytes`;
    },
    close: () => {
      netlink.close();
      for (const fd of raw.values()) close(fd);
    },
  };
}

function header(family: 4 | 6): Buffer {
  return Buffer.from([LEGACY[family].domain, 0, 0, 0]);
}
