/** The kernel's own connection tracking, of one network namespace. */

export interface ConntrackTuple {
  readonly protocol: number;
  readonly source: string;
  readonly destination: string;
  /** Of ICMP: the identifier, in both. */
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly icmp?: { readonly type: number; readonly code: number };
}

export const TCP_STATES = [
  "none",
  "synSent",
  "synRecv",
  "established",
  "finWait",
  "closeWait",
  "lastAck",
  "timeWait",
  "close",
  "synSent2",
] as const;
export type TcpState = (typeof TCP_STATES)[number];

export interface ConntrackEntry {
  readonly original: ConntrackTuple;
  readonly reply: ConntrackTuple;
  readonly mark: number;
  /** Seconds until it is forgotten. */
  readonly timeout: number;
  readonly seenReply: boolean;
  readonly assured: boolean;
  readonly sourceNat: boolean;
  readonly destinationNat: boolean;
  readonly tcpState: TcpState | undefined;
  /** Packets of both directions, when the kernel counts them. */
  readonly packets: number | undefined;
}

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/**
 * A flow to be known to the kernel as if it had seen it. Only what the first packet looked like, and what is to be translated: with a
 * translated reply given as well, the kernel would not translate at all.
 */
export interface NewConntrackEntry {
  readonly original: ConntrackTuple;
  readonly destinationNat?: Endpoint;
  readonly sourceNat?: Endpoint;
  readonly mark?: number;
  readonly timeout: number;
  /** TCP only (default: established). */
  readonly tcpState?: TcpState;
}

export interface ConntrackChange {
  readonly mark?: number;
  readonly timeout?: number;
}

export interface ConntrackFilter {
  readonly family?: 4 | 6;
  /** The mark, or those of its bits. */
  readonly mark?: number;
  readonly markMask?: number;
}

export interface ConntrackFill {
  readonly entries: number;
  /** Undefined: this kernel does not say. */
  readonly max: number | undefined;
}

export interface ConntrackPort {
  /** How many there are, without reading them. */
  fill(): ConntrackFill;
  /** All of it may be large: read in pieces, the event loop runs between them. */
  list(filter?: ConntrackFilter): Promise<ConntrackEntry[]>;
  /** The flow that packets of this kind belong to, of either direction; so are all here. */
  find(packets: ConntrackTuple): ConntrackEntry | undefined;
  /** Throws with EEXIST when its packets, of either direction, are another's already. */
  insert(flow: NewConntrackEntry): void;
  /** Whether it was there. */
  update(packets: ConntrackTuple, change: ConntrackChange): boolean;
  delete(packets: ConntrackTuple): boolean;
  close(): void;
}
