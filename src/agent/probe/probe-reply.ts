/** The reply of a probe's server to its clients: its own name, and the client's address. One line of JSON, over TCP and UDP alike. */
export interface ProbeReply {
  /** The name of the host or pod that answers. */
  host: string;
  /** The address the packet came from, after everything on its way. */
  client: string;
  /** The port that was reached. */
  port: number;
  /** Over UDP: the line it answers to. */
  said?: string;
}

export function replyLine(answer: ProbeReply): string {
  return `${JSON.stringify(answer)}\n`;
}

export function parseReply(line: string): ProbeReply | undefined {
  try {
    const read = JSON.parse(line) as Partial<ProbeReply>;
    return typeof read.host === "string" && typeof read.client === "string" ? (read as ProbeReply) : undefined;
  } catch {
    return undefined;
  }
}

/** An IPv4 address that came in on a socket of both families. */
export function plainAddress(address: string | undefined): string {
  return (address ?? "").replace(/^::ffff:(?=\d+\.)/, "");
}
