/**
 * The two data planes, in the words of the API (`spec.vendorNetwork.linuxDataplane`). One spelling from the CLI to the agent; what older
 * releases wrote or people type is read by `parseDataplane` and nowhere else.
 */
export type Dataplane = "BPF" | "Nftables";

/** What the BPF programs of a node do. `Draining`: they take no new connections and carry those that only they can. */
export type DataplaneState = "Off" | "Active" | "Draining";
