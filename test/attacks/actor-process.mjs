// What runs in a namespace of the lab: sends, listens and holds connections as it is ordered, a line of JSON each.
import { createSocket } from "node:dgram";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

const sockets = new Map();
const listeners = new Map();
const connections = new Map();

function ended(state) {
  return () => {
    state.open = false;
  };
}

/** What one end of a connection got, and whether it is still one. */
function watch(socket) {
  const state = { socket, received: "", open: true };
  socket.setNoDelay(true);
  socket.on("data", (text) => {
    state.received += text;
  });
  socket.on("error", ended(state));
  socket.on("close", ended(state));
  return state;
}

const acts = {
  // A UDP socket that stays, so that it can be answered and answer.
  udp: ({ name, family, port = 0 }) =>
    new Promise((resolve, reject) => {
      const socket = createSocket({ type: family === 6 ? "udp6" : "udp4", ipv6Only: family === 6 });
      const state = { socket, heard: [] };
      socket.on("message", (text, from) => state.heard.push({ text: String(text), ...from }));
      socket.on("error", reject);
      socket.bind({ port }, () => {
        sockets.set(name, state);
        resolve(socket.address().port);
      });
    }),
  send: ({ name, address, port, payload }) =>
    new Promise((resolve) => {
      sockets
        .get(name)
        .socket.send(Buffer.from(payload, "base64"), port, address, (error) => resolve(error ? error.message : "sent"));
    }),
  heard: ({ name }) => sockets.get(name).heard.map(({ text }) => text),
  // A TCP server of one connection at a time.
  serve: ({ name, port }) =>
    new Promise((resolve) => {
      const state = { peer: undefined };
      const server = createServer((socket) => {
        state.peer = watch(socket);
      });
      listeners.set(name, state);
      server.listen({ port, host: "::" }, () => resolve(true));
    }),
  // A TCP server that says everything again, to any number of clients.
  echo: ({ port }) =>
    new Promise((resolve) => {
      const server = createServer((socket) => {
        socket.on("error", () => socket.destroy());
        socket.pipe(socket);
      });
      server.listen({ port, host: "::" }, () => resolve(true));
    }),
  // A datagram for each of so many connections: from several ports to many. How many could be sent.
  flood: async ({ family, address, count, from }) => {
    const senders = Array.from({ length: from }, () => createSocket(family === 6 ? "udp6" : "udp4"));
    await Promise.all(senders.map((socket) => new Promise((resolve) => socket.bind({ port: 0 }, resolve))));
    let sent = 0;
    const send = (at) =>
      new Promise((resolve) => {
        senders[at % from].send("flood", 1024 + Math.floor(at / from), address, (error) => {
          sent += error ? 0 : 1;
          resolve();
        });
      });
    const AT_ONCE = 256;
    for (let first = 0; first < count; first += AT_ONCE) {
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, at) => send(first + at)));
    }
    for (const socket of senders) socket.close();
    return sent;
  },
  connect: ({ name, address, port, patience }) =>
    new Promise((resolve) => {
      const socket = connect({ host: address, port });
      const timer = setTimeout(() => {
        socket.destroy();
        resolve(false);
      }, patience);
      socket.on("connect", () => {
        clearTimeout(timer);
        resolve(true);
      });
      connections.set(name, watch(socket));
      socket.on("error", () => {
        clearTimeout(timer);
        resolve(false);
      });
    }),
  write: ({ name, text }) => {
    const state = connections.get(name) ?? listeners.get(name)?.peer;
    state?.socket.write(text);
    return state !== undefined;
  },
  received: ({ name }) => (connections.get(name) ?? listeners.get(name)?.peer)?.received ?? "",
  close: ({ name }) => {
    (connections.get(name) ?? listeners.get(name)?.peer)?.socket.destroy();
    return true;
  },
};

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  void Promise.resolve()
    .then(() => acts[order.do](order))
    .then(
      (answer) => console.log(JSON.stringify({ id: order.id, answer })),
      (error) => console.log(JSON.stringify({ id: order.id, failed: error.message })),
    );
}
process.exit(0);
