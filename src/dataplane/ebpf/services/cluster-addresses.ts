import type { ServicePort, TableDelta } from "../../../calc/model.ts";
import { clusterAddressLayout } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import type { CodedError } from "../../../kit/errors.ts";
import { MapTable } from "../map-table.ts";
import { addressBytes } from "../net-bytes.ts";

/** Addresses the cluster gave services, so that a port they do not have is refused rather than sent to nowhere. */
export class ClusterAddresses {
  private readonly table: MapTable;
  private readonly addressOf = new Map<string, string>();
  private readonly ports = new Map<string, number>();

  constructor(map: BpfMap) {
    this.table = new MapTable(map);
    this.table.resync();
  }

  want({ set, remove }: TableDelta<ServicePort>): void {
    const touched = new Set<string>();
    const change = (id: string, address: string | null) => {
      const before = this.addressOf.get(id);
      if (before === (address ?? undefined)) return;
      for (const [one, step] of [[before, -1] as const, [address ?? undefined, 1] as const]) {
        if (one === undefined) continue;
        this.ports.set(one, (this.ports.get(one) ?? 0) + step);
        touched.add(one);
      }
      if (address === null) this.addressOf.delete(id);
      else this.addressOf.set(id, address);
    };
    for (const { id, clusterAddress } of set) change(id, clusterAddress);
    for (const id of remove) change(id, null);
    for (const address of touched) this.report(address);
  }

  resync(): void {
    this.table.resync();
  }

  /** Why one of them could not be written, if so. */
  write(): CodedError | undefined {
    const [failed] = this.table.write().values();
    return failed;
  }

  /** Those of an earlier life too. */
  remove(): void {
    this.table.remove();
  }

  private report(address: string): void {
    const key = Buffer.from(addressBytes(address));
    const ports = this.ports.get(address) ?? 0;
    if (ports > 0) {
      this.table.want(key, clusterAddressLayout.write({ ports }));
      return;
    }
    this.ports.delete(address);
    this.table.unwant(key);
  }
}
