import type { EncapsulationReport } from "../../api/protocol/agent-report.ts";
import type { Tunnel } from "../../api/protocol/pool-tunnels.ts";
import type { DataplaneModel } from "../../calc/model.ts";
import type { ObjectOutcome } from "../../dataplane/contract.ts";
import { IPIP } from "../../dataplane/net/ipip.ts";
import type { NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { OVERLAY } from "../dataplanes.ts";
import type { ModelLoop } from "../model-loop.ts";

const DEVICES: Readonly<Record<Tunnel, string>> = { ipip: IPIP, vxlan: OVERLAY };

export interface FollowedEncapsulation {
  /** Of the newest model that is in effect; undefined: none is, or a part of it failed. */
  report(): EncapsulationReport | undefined;
  close(): void;
}

/** What others may rely on before they send to this node in another way: read after each turn, never in the middle of one. */
export function followEncapsulation(
  loop: Pick<ModelLoop, "model" | "ready" | "failure" | "problems" | "onTurn">,
  netlink: Pick<NetlinkPort, "link">,
  onChange: () => void,
): FollowedEncapsulation {
  let now: EncapsulationReport | undefined;
  const close = loop.onTurn(() => {
    const isWhole = loop.ready && loop.failure() === undefined && !loop.problems().some(isRoute);
    const seen = isWhole ? reportOf(loop.model, netlink) : undefined;
    const isNews = JSON.stringify(seen) !== JSON.stringify(now);
    now = seen;
    if (isNews) onChange();
  });
  return { report: () => now, close };
}

function reportOf({ settings }: Pick<DataplaneModel, "settings">, netlink: Pick<NetlinkPort, "link">) {
  return {
    tunnels: settings.tunnels.filter((tunnel) => netlink.link(DEVICES[tunnel])?.up),
    pools: settings.pools.map(({ cidr, encapsulation }) => `${cidr} ${encapsulation}`),
  };
}

/** One that waits for the interface of a pod is of that pod alone. */
function isRoute({ kind, failed }: ObjectOutcome): boolean {
  return kind === "route" && failed?.code !== "NET_INTERFACE_ABSENT";
}
