import type { BpfMap, BpfPort } from "../../../kernel/bpf/bpf-port.ts";

/** What services are known by, and what is remembered of their clients. */
const MIGRATED = ["backends", "frontends", "source_ranges", "affinities", "socket_choices", "socket_peers"] as const;

/**
 * Takes over services from the maps of the layout before, so that an upgrade is to their clients what a restart is. Maps whose entries are
 * of another size there are other maps, and are left: their services get new numbers.
 */
export async function migrateServices(bpf: BpfPort, from: string, to: (name: string) => BpfMap): Promise<void> {
  const there = bpf.pins(from);
  for (const name of MIGRATED) {
    if (!there.includes(name)) continue;
    const [before, map] = [bpf.openMap(`${from}/${name}`), to(name)];
    try {
      const same = before.info.keySize === map.info.keySize && before.info.valueSize === map.info.valueSize;
      // A frontend without its backends would lead nowhere.
      if (!same) return;
      for (const chunk of before.chunks(4096)) await map.updateMany(chunk);
    } finally {
      before.close();
    }
  }
}
