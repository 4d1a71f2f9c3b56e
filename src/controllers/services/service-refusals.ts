import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { createCalculator } from "../../calc/calculator.ts";
import { kindOf } from "../../calc/calculator-kinds.ts";
import type { Informer } from "../../cluster/informer.ts";
import type { Informers } from "../informers.ts";

/** Whose model is calculated: that of no node, which has what every node has in common. */
const NO_NODE = "";

/** Which Services are refused addresses, by the same calculation that agents program their nodes from. */
export interface ServiceRefusals {
  setApiServers(addresses: readonly string[]): void;
  /** Calculates what changed since the last time; gives the Services, `NAMESPACE/NAME`, whose refusal is another now. */
  settle(): string[];
  /** Why addresses of a Service are not served; undefined where all are. As of the last `settle`. */
  of(service: string): string | undefined;
  stop(): void;
}

/** `foreignAddresses`: as for agents, another CNI plugin gives pods their addresses. */
export function serviceRefusals(informers: Informers, foreignAddresses: boolean): ServiceRefusals {
  const calculator = createCalculator(NO_NODE, vendorNames, { foreignAddresses });
  const feed = <T extends KubeObject>(informer: Informer<T>): (() => void) =>
    informer.onChange(({ type, object }) => {
      if (type === "deleted") calculator.remove(kindOf(object), object.metadata);
      else calculator.set(object);
    });
  const { nodes, pods, pools, blocks, services, apiServerSlice } = informers;
  const ends = [feed(nodes), feed(pods), feed(pools), feed(blocks), feed(services), feed(apiServerSlice)];
  /** By id of the problem, as deltas remove it. */
  const problems = new Map<string, { service: string; message: string }>();
  const byService = new Map<string, string>();

  return {
    setApiServers: (addresses) => calculator.setApiServers(addresses),
    settle() {
      const { set, remove } = calculator.takeDelta()?.problems ?? { set: [], remove: [] };
      const changed = new Set<string>();
      for (const id of remove) {
        const gone = problems.get(id);
        if (!gone) continue;
        problems.delete(id);
        byService.delete(gone.service);
        changed.add(gone.service);
      }
      for (const { id, code, object, message } of set) {
        if (code !== "SERVICE_ADDRESS_REFUSED") continue;
        const service = `${object.namespace}/${object.name}`;
        problems.set(id, { service, message });
        byService.set(service, message);
        changed.add(service);
      }
      return [...changed];
    },
    of: (service) => byService.get(service),
    stop() {
      for (const end of ends) end();
    },
  };
}
