// What runs in a namespace of the lab: echoes on a few ports, and does what it is told, a line of JSON each.
import { createSocket } from "node:dgram";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

const PORTS = process.argv.slice(2).map(Number);
const PROBE = "probe:";
const held = new Map();
const heard = [];

const acts = {
  tcp: ({ address, port, patience }) =>
    new Promise((resolve) => {
      const socket = connect({ host: address, port });
      const end = (answer) => {
        clearTimeout(timer);
        socket.destroy();
        resolve(answer);
      };
      const timer = setTimeout(() => end(false), patience);
      socket.on("connect", () => socket.write("hello"));
      socket.on("data", () => end(true));
      socket.on("error", () => end(false));
    }),
  udp: ({ address, port, patience, from }) =>
    new Promise((resolve) => {
      const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
      const say = () => socket.send("hello", port, address, () => {});
      const again = setInterval(say, 100);
      const end = (answer) => {
        clearTimeout(timer);
        clearInterval(again);
        socket.close();
        resolve(answer);
      };
      const timer = setTimeout(() => end(false), patience);
      socket.on("message", () => end(true));
      socket.on("error", () => end(false));
      socket.bind(from ?? { port: 0 }, say);
    }),
  // A connection that stays.
  hold: ({ name, address, port }) =>
    new Promise((resolve) => {
      const socket = connect({ host: address, port });
      held.set(name, socket);
      socket.on("connect", () => resolve(true));
      socket.on("error", () => resolve(false));
    }),
  say: ({ name, patience }) =>
    new Promise((resolve) => {
      const socket = held.get(name);
      const end = (answer) => {
        clearTimeout(timer);
        socket.removeAllListeners("data");
        resolve(answer);
      };
      const timer = setTimeout(() => end(false), patience);
      socket.once("data", () => end(true));
      socket.write("again");
    }),
  // Small datagrams without end, and how many came back, since asked last.
  stream: ({ name, address, port }) => {
    const socket = createSocket("udp4");
    const state = { socket, answers: 0, sent: 0 };
    held.set(name, state);
    socket.on("message", () => state.answers++);
    socket.on("error", () => {});
    // A socket for each: a flow that is known already would prove nothing.
    const one = () => {
      const fresh = createSocket("udp4");
      fresh.on("message", () => state.answers++);
      fresh.on("error", () => {});
      fresh.send("probe", port, address, () => setTimeout(() => fresh.close(), 200));
      state.sent++;
    };
    state.timer = setInterval(one, 5);
    return true;
  },
  // One datagram, from an address and port of its own; nobody answers it, whoever gets it remembers.
  send: ({ source, sourcePort, address, port, text }) =>
    new Promise((resolve) => {
      const socket = createSocket({ type: address.includes(":") ? "udp6" : "udp4", reuseAddr: true });
      const end = (answer) => {
        socket.close();
        resolve(answer);
      };
      socket.on("error", ({ message }) => end(message));
      socket.bind({ address: source, port: sourcePort }, () =>
        socket.send(`${PROBE}${text}`, port, address, (error) => end(error ? error.message : true)),
      );
    }),
  // So many datagrams from one socket: each is awaited where it is answered.
  datagrams: ({ address, port, count, bytes, answered, sourcePort }) =>
    new Promise((resolve) => {
      const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
      const text = Buffer.alloc(bytes, "x");
      if (!answered) text.write(PROBE);
      let [sent, answers] = [0, 0];
      const next = () => {
        if (sent === count) {
          if (answered && answers < count) return;
          const from = socket.address().port;
          socket.close();
          resolve({ sent, answers, from });
          return;
        }
        sent++;
        socket.send(text, port, address, () => {
          if (!answered) setImmediate(next);
        });
      };
      socket.on("message", () => {
        answers++;
        next();
      });
      socket.on("error", () => {});
      socket.bind(sourcePort ?? 0, next);
    }),
  // One connection after the other, each with an echo of so many bytes; ended as asked.
  connections: async ({ address, port, count, bytes, reset, sourcePort }) => {
    let done = 0;
    for (let index = 0; index < count; index++) {
      done += await new Promise((resolve) => {
        const socket = connect({ host: address, port, ...(sourcePort ? { localPort: sourcePort } : {}) });
        let received = 0;
        socket.on("connect", () => socket.write(Buffer.alloc(bytes, "x")));
        socket.on("data", (data) => {
          received += data.length;
          if (received < bytes) return;
          if (reset) socket.resetAndDestroy();
          else socket.end();
        });
        socket.on("close", () => resolve(received === bytes ? 1 : 0));
        socket.on("error", () => {});
      });
    }
    return done;
  },
  heard: () => heard.splice(0),
  count: ({ name }) => {
    const { answers, sent } = held.get(name);
    return { answers, sent };
  },
};

const servers = PORTS.flatMap((port) => [
  new Promise((ready) =>
    createServer((socket) => socket.on("error", () => {}).pipe(socket)).listen({ port, host: "::" }, ready),
  ),
  ...["udp4", "udp6"].map(
    (type) =>
      new Promise((ready) => {
        const socket = createSocket({ type, ipv6Only: type === "udp6", reuseAddr: true });
        socket.on("message", (text, { address, port: to }) => {
          if (String(text).startsWith(PROBE)) heard.push(String(text).slice(PROBE.length));
          else socket.send(text, to, address, () => {});
        });
        socket.on("error", () => {});
        socket.bind({ port }, ready);
      }),
  ),
]);
await Promise.all(servers);
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  void Promise.resolve(acts[order.do](order)).then((answer) => console.log(JSON.stringify({ id: order.id, answer })));
}
process.exit(0);
