import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { runCommand } from "../../src/local/runtime/netns/run-command.ts";
import { until } from "../agent/node-lab.ts";

/** Frames seen on the nodes' segment since the last look, of answers from one port of the first node whose backend is on the second one. */
export interface ReplyCounters {
  /** Out of the first node's own uplink. */
  first: number;
  /** Out of the second node's, in the first one's name. */
  second: number;
  /** In the tunnel from the second node to the first. */
  tunnel: number;
}

export interface ReplyCounting {
  sample(): Promise<ReplyCounters>;
  /** Resolves when nothing of what was said before is on its way any more, and begins anew. */
  quiet(): Promise<void>;
}

/** Looks in a row without a frame: connections that ended have said all they had to. */
const QUIET_LOOKS = 10;

/** Every frame passes the segment's bridge, and is counted by the port of the bridge it comes in by. */
export async function countReplies(
  segment: Netns,
  { port, first }: { port: number; first: { v4: string; v6: string } },
): Promise<ReplyCounting> {
  const nft = async (args: string[], input = "") => {
    const { code, out, err } = await runCommand(["ip", "netns", "exec", segment.name, "nft", ...args], { input });
    if (code !== 0) throw new Error(err);
    return out;
  };
  const answer = `meta l4proto { tcp, udp } th sport ${port}`;
  await nft(
    ["-f", "-"],
    `table bridge answers {
      counter first {}
      counter second {}
      counter tunnel {}
      chain arriving {
        type filter hook prerouting priority 0
        iifname port1 ${answer} counter name first
        iifname port2 ip saddr ${first.v4} ${answer} counter name second
        iifname port2 ip6 saddr ${first.v6} ${answer} counter name second
        iifname port2 ip daddr ${first.v4} udp dport 4789 counter name tunnel
      }
    }`,
  );
  const look = async () => {
    const { nftables } = JSON.parse(await nft(["-j", "reset", "counters", "table", "bridge", "answers"])) as {
      nftables: { counter?: { name: string; packets: number } }[];
    };
    const packets = nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter.packets] as const] : []));
    return Object.fromEntries(packets) as unknown as ReplyCounters;
  };
  return {
    sample: look,
    async quiet() {
      let looks = 0;
      await until(
        async () => {
          const { first, second, tunnel } = await look();
          looks = first + second + tunnel === 0 ? looks + 1 : 0;
          return looks === QUIET_LOOKS;
        },
        () => "answers keep coming",
      );
    },
  };
}
