/**
 * The two data planes, in the words of the API (`spec.vendorNetwork.linuxDataplane`). One spelling from the command line to the kernel; what
 * people type and what earlier releases wrote is read here and nowhere else.
 */
export type Dataplane = "BPF" | "Nftables";

/** What the BPF programs of a node do. `Draining`: they take no new connections and carry those that only they can. */
export type DataplaneState = "Off" | "Active" | "Draining";

/** In plans and journals. Earlier releases wrote `standard`. */
export type WrittenDataplane = Dataplane | "standard";

export function dataplaneOf(written: WrittenDataplane): Dataplane {
  return written === "standard" ? "Nftables" : written;
}

const WORDS: Readonly<Record<string, Dataplane>> = {
  bpf: "BPF",
  ebpf: "BPF",
  nftables: "Nftables",
  nft: "Nftables",
  standard: "Nftables",
};

/** As people type it, in any case; undefined for what is no data plane. */
export function parseDataplane(text: string): Dataplane | undefined {
  const word = text.trim().toLowerCase();
  return Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
}
