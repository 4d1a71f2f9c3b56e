import { Socket } from "node:net";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";

/**
 * A TCP connection that begins in another network namespace. Node connects later than it is asked to, when the thread is home again, but
 * it connects the socket it is given, and a socket stays where it was made.
 */
export function dial(kernel: Kernel, netns: Netns, { host, port }: { host: string; port: number }): Socket {
  const any = host.includes(":") ? "::" : "0.0.0.0";
  const fd = kernel.netns.bind(netns, { kind: "stream", address: any, port: 0 });
  // Not to be read from before it is connected: Node would take the refusal for the end.
  const socket = new Socket({ fd, manualStart: true } as { fd: number });
  return socket.connect(port, host);
}
