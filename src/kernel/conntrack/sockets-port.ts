/** Sockets of one network namespace. */
export interface OpenSocket {
  readonly protocol: "tcp" | "udp";
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
  /** The number programs know it by; no two sockets ever have the same. */
  readonly cookie: bigint;
}

export interface SocketSelection {
  readonly protocol: "tcp" | "udp";
  readonly destination: string;
  readonly destinationPort?: number;
  /** Only these, by the numbers programs know them by. */
  readonly cookies?: ReadonlySet<bigint>;
}

export interface SocketsPort {
  /** Connected ones; of TCP without those that only wait to be forgotten. */
  connected(protocol: "tcp" | "udp", family: 4 | 6): OpenSocket[];
  /** Closes sockets connected there, under the feet of who holds them; how many. They see ECONNABORTED and may connect again. */
  destroy(selection: SocketSelection): number;
  close(): void;
}
