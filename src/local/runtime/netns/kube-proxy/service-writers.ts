import type { ServicePort } from "../../../../calc/model.ts";
import type { NftPort } from "../../../../kernel/nft/nft-port.ts";
import { errors } from "../errors.ts";
import type { Ran } from "../run-command.ts";
import type { ProxyNode } from "./proxy-node.ts";
import { hasCanaries, jumpsText, restoreText } from "./service-iptables.ts";
import { emptyTable, SERVICE_TABLE, type ServiceObjects, serviceObjects } from "./service-nftables.ts";
import { serviceTransaction } from "./service-transaction.ts";

/** Puts the services of one node into its kernel. What it wrote stays when it stops. */
export interface ServiceRulesWriter {
  write(rows: ReadonlyMap<string, ServicePort>): Promise<void>;
  /** Whether the rules were removed. */
  areRemoved(): Promise<boolean>;
  close(): void;
}

/** Runs a command on the node. */
export type RunOnNode = (command: readonly string[], input?: string) => Promise<Ran>;

/** Which of the two iptables: `iptables` is the one the system chose. */
export type IptablesVariant = "iptables" | "iptables-legacy" | "iptables-nft";

/** Rules are written at every change, in one transaction per table and family, missing jumps in one before it, as kube-proxy's iptables mode does. */
export function iptablesWriter(
  run: RunOnNode,
  node: ProxyNode,
  variant: IptablesVariant = "iptables",
): ServiceRulesWriter {
  const commandOf = (family: 4 | 6, verb: string) => {
    const [, backend = ""] = variant.split(/(?=-)/);
    return `${family === 4 ? "iptables" : "ip6tables"}${backend}-${verb}`;
  };
  const succeed = async (command: readonly string[], input?: string): Promise<string> => {
    const { code, out, err } = await run(command, input);
    if (code !== 0) throw errors.SERVICE_RULES_REFUSED(command[0] as string, err.trim() || `status ${code}`);
    return out;
  };
  return {
    async write(rows) {
      for (const family of [4, 6] as const) {
        const saved = await succeed([commandOf(family, "save")]);
        const restore = [commandOf(family, "restore"), "--noflush", "--wait", "5"];
        const jumps = jumpsText(saved);
        if (jumps !== undefined) await succeed(restore, jumps);
        await succeed(restore, restoreText({ family, rows: [...rows.values()], node, saved }));
      }
    },
    async areRemoved() {
      return !hasCanaries(await succeed([commandOf(4, "save")]));
    },
    close: () => {},
  };
}

/** Only what differs is written. A table that another program changed or removed is written whole. */
export function nftablesWriter(nft: NftPort, node: ProxyNode): ServiceRulesWriter {
  let written: ReadonlyMap<ServicePort, ServiceObjects> | undefined;
  const whole = (objects: readonly ServiceObjects[]) =>
    (["ip", "ip6"] as const)
      .map((family) => {
        const table = `${family} ${SERVICE_TABLE}`;
        return `table ${table}\ndelete table ${table}\n${emptyTable(family, node)}`;
      })
      .join("") + serviceTransaction([], objects);
  return {
    async write(rows) {
      const before = written;
      const wanted = new Map(
        [...rows.values()].map((row) => [row, before?.get(row) ?? serviceObjects(row, node)] as const),
      );
      const objects = [...wanted.values()];
      written = undefined;
      if (before) {
        const difference = serviceTransaction([...before.values()], objects);
        const done =
          difference === "" ||
          (await nft
            .run(difference)
            .then(() => true)
            .catch(() => false));
        if (!done) await nft.run(whole(objects));
      } else await nft.run(whole(objects));
      written = wanted;
    },
    async areRemoved() {
      const here = (await nft.tables()).filter(({ name }) => name === SERVICE_TABLE);
      if (here.length === 2) return false;
      written = undefined;
      return true;
    },
    close: () => nft.close(),
  };
}
