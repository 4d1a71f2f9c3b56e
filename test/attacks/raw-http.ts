import type { Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

/** Bytes as they are, without the care of an HTTP client. */
export interface RawPort {
  port: number;
  /** Sends, and gives everything that comes back until the server closes. */
  send(bytes: string | Buffer): Promise<string>;
  /** Opens and leaves open; the caller watches it. */
  open(bytes?: string | Buffer): Promise<Socket>;
}

export async function rawPort(server: Server): Promise<RawPort> {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return rawPortAt((server.address() as AddressInfo).port);
}

export function rawPortAt(port: number): RawPort {
  const open = async (bytes: string | Buffer = "") => {
    const socket = connect(port, "127.0.0.1");
    // A reset is an answer, too.
    socket.on("error", () => socket.destroy());
    await new Promise((resolve) => socket.once("connect", resolve).once("close", resolve));
    if (bytes.length > 0) socket.write(bytes);
    return socket;
  };
  const send = async (bytes: string | Buffer) => {
    const socket = await open(bytes);
    return await new Promise<string>((resolve) => {
      const parts: Buffer[] = [];
      socket.on("data", (part: Buffer) => parts.push(part));
      socket.once("close", () => resolve(Buffer.concat(parts).toString("latin1")));
    });
  };
  return { port, send, open };
}

export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once("close", () => resolve()).resume();
  });
}
