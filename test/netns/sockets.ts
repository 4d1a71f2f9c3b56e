import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { createServer, type Server, type Socket } from "node:net";
import { type ProbeReply, parseReply, plainAddress, replyLine } from "../../src/agent/probe/probe-reply.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { dial } from "../../src/local/runtime/netns/dial.ts";

/** Sockets of this process in other network namespaces: real packets, and no process to start for each of them. */

export interface Ports {
  tcp?: readonly number[];
  udp?: readonly number[];
}

export interface Listener {
  close(): void;
}

const kernel: Kernel = realKernel();

/** Answers in the namespace on these ports, on every address, with its name and the address it saw. */
export async function answerIn(netns: Netns, host: string, { tcp = [], udp = [] }: Ports): Promise<Listener> {
  const servers = await Promise.all(tcp.map((port) => tcpIn(netns, host, port)));
  const sockets = await Promise.all(udp.map((port) => udpIn(netns, host, port)));
  return {
    close() {
      for (const server of servers) server.close();
      for (const socket of sockets) socket.close();
    },
  };
}

function tcpIn(netns: Netns, host: string, port: number): Promise<Server> {
  const fd = kernel.netns.bind(netns, { kind: "stream", address: "::", port });
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.end(replyLine({ host, client: plainAddress(socket.remoteAddress), port }));
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen({ fd }, () => resolve(server));
  });
}

function udpIn(netns: Netns, host: string, port: number): Promise<UdpSocket> {
  const fd = kernel.netns.bind(netns, { kind: "datagram", address: "::", port });
  const socket = createSocket("udp6");
  socket.on("message", (_, from) => {
    socket.send(replyLine({ host, client: plainAddress(from.address), port }), from.port, from.address);
  });
  return new Promise((resolve, reject) => {
    socket.once("error", reject).bind({ fd }, () => resolve(socket));
  });
}

/** Who answers at this address, asked from inside the namespace; undefined when nobody does in time. */
export async function askFrom(
  netns: Netns,
  { host, port, protocol = "tcp" }: { host: string; port: number; protocol?: "tcp" | "udp" },
  timeoutMs = 3000,
): Promise<ProbeReply | undefined> {
  const answered = protocol === "tcp" ? overTcp(netns, host, port) : overUdp(netns, host, port);
  const late = setTimeout(() => answered.giveUp(), timeoutMs);
  try {
    return await answered.answer;
  } finally {
    clearTimeout(late);
    answered.giveUp();
  }
}

interface Asked {
  answer: Promise<ProbeReply | undefined>;
  giveUp(): void;
}

function overTcp(netns: Netns, host: string, port: number): Asked {
  let socket: Socket;
  try {
    socket = dial(kernel, netns, { host, port });
  } catch {
    return { answer: Promise.resolve(undefined), giveUp: () => undefined };
  }
  let text = "";
  const answer = new Promise<ProbeReply | undefined>((resolve) => {
    socket.on("data", (bytes) => {
      text += bytes.toString();
    });
    socket.on("error", () => resolve(undefined)).on("close", () => resolve(parseReply(text)));
  });
  return { answer, giveUp: () => void socket.destroy() };
}

const AGAIN_MS = 150;

function overUdp(netns: Netns, host: string, port: number): Asked {
  const family = host.includes(":") ? 6 : 4;
  const fd = kernel.netns.bind(netns, { kind: "datagram", address: family === 6 ? "::" : "0.0.0.0", port: 0 });
  const socket = createSocket(family === 6 ? "udp6" : "udp4");
  let again: NodeJS.Timeout | undefined;
  let isOpen = true;
  const giveUp = () => {
    clearInterval(again);
    if (isOpen) socket.close();
    isOpen = false;
  };
  const answer = new Promise<ProbeReply | undefined>((resolve) => {
    socket.on("message", (bytes) => resolve(parseReply(bytes.toString())));
    socket.on("error", () => resolve(undefined)).on("close", () => resolve(undefined));
    socket.bind({ fd }, () => {
      const send = () => socket.send("ask\n", port, host, () => undefined);
      send();
      again = setInterval(send, AGAIN_MS);
    });
  });
  return { answer, giveUp };
}
