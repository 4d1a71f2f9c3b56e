/** Frames of one Ethernet protocol at one interface, without the IP stack: what no IP packet can imitate. */
export interface FramesPort {
  /** Refuses an interface that is not there. */
  open(selection: FrameSelection, onFrame: (frame: Buffer) => void): FrameSocket;
}

export interface FrameSelection {
  /** Number of the interface. */
  readonly device: number;
  /** The EtherType, as 0x88b5. */
  readonly protocol: number;
}

export interface FrameSocket {
  /** A whole frame, Ethernet header first. Whether the kernel took it: not while the interface is down, nor more than its MTU. */
  send(frame: Uint8Array): boolean;
  close(): void;
}
