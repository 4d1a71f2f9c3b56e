import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { hostname } from "node:os";
import { errors } from "../errors.ts";
import { plainAddress, replyLine } from "./probe-reply.ts";

export interface ProbePorts {
  tcp: readonly number[];
  udp: readonly number[];
}

export interface ProbeServer {
  /** Those that were asked for, in their order; a port 0 has become a real one. */
  readonly ports: ProbePorts;
  close(): Promise<void>;
}

/** An answer repeats so much of a question, so that it is never much longer than it. */
const MAX_MESSAGE = 32;

/** Answers on every address of both families: over TCP with a line at once and then with every line it is sent, over UDP once a datagram. */
export async function serveProbe({ tcp, udp }: ProbePorts, host = hostname()): Promise<ProbeServer> {
  const servers = await Promise.all(tcp.map((port) => listenTcp(port, host)));
  const sockets = await Promise.all(udp.map((port) => listenUdp(port, host)));
  return {
    ports: {
      tcp: servers.map(({ server }) => (server.address() as AddressInfo).port),
      udp: sockets.map((socket) => socket.address().port),
    },
    async close() {
      for (const { open } of servers) for (const socket of open) socket.destroy();
      await Promise.all(servers.map(({ server }) => new Promise((done) => server.close(done))));
      await Promise.all(sockets.map((socket) => new Promise<void>((done) => socket.close(done))));
    },
  };
}

function listenTcp(port: number, host: string): Promise<{ server: Server; open: Set<Socket> }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy()).on("close", () => open.delete(socket));
    const client = plainAddress(socket.remoteAddress);
    socket.write(replyLine({ host, client, port: socket.localPort ?? port }));
    socket.pipe(socket);
  });
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(errors.PROBE_CANNOT_LISTEN(`TCP port ${port}`, error.message)));
    server.listen(port, () => resolve({ server, open }));
  });
}

function listenUdp(port: number, host: string): Promise<UdpSocket> {
  const socket = createSocket("udp6");
  socket.on("message", (message, { address, port: from }) => {
    const said = message.toString("utf8", 0, MAX_MESSAGE).trim();
    const line = replyLine({ host, client: plainAddress(address), port: socket.address().port, said });
    socket.send(line, from, address);
  });
  return new Promise((resolve, reject) => {
    socket.once("error", (error) => reject(errors.PROBE_CANNOT_LISTEN(`UDP port ${port}`, error.message)));
    socket.bind(port, () => resolve(socket));
  });
}
