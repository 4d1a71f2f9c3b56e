// Traffic of one place, as a process of its own: `serve PORT` answers, `talk` keeps connections and says what became of them, `knock`
// begins one after another where nobody should answer.
// A line `report` on standard input is answered by one line of JSON per class on standard output.
import { createSocket } from "node:dgram";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

const HUNG_MS = 5_000;
/** As much as anybody may have: a process that has to wait for its turn is not to lose datagrams by that. */
const ROOM = 212_992;
/** How long an answer to a knock is waited for. */
const KNOCK_MS = 500;
const [, , what, ...rest] = process.argv;

// Whoever started us is gone, or wants us gone.
process.stdin.on("end", () => process.exit(0));
if (what === "serve") process.stdin.resume();
if (what === "serve") serve(rest[0], Number(rest[1]), rest[2] ?? "::");
else if (what === "knock") knock(JSON.parse(rest[0]));
else talk(JSON.parse(rest[0]));

/** Every line comes back with the name of who answered. A place with several addresses has to say which one it answers from. */
function serve(name, port, host) {
  createServer((socket) => {
    let text = "";
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk) => {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop();
      for (const line of lines) socket.write(`${name} ${socket.remoteAddress} ${line}\n`);
    });
  }).listen({ port, host, backlog: 1024 }, () => {
    const udp = createSocket({ type: host.includes(":") ? "udp6" : "udp4", recvBufferSize: ROOM });
    udp.on("message", (message, { address, port: to }) => udp.send(`${name} ${address} ${message}`, to, address));
    udp.bind(port, host, () => process.stdout.write("ready\n"));
  });
}

function talk({ flows: wanted, intervalMs }) {
  const flows = wanted.flatMap(({ count, ...one }) => Array.from({ length: count }, () => start(one)));
  let quiet = false;
  // Those that are to be idle have said that they are there once everybody has.
  let awake = true;
  // Spread over the interval, so that a burst is never the cause of a silence.
  const slices = 20;
  let turn = 0;
  setInterval(() => {
    turn++;
    if (quiet) return;
    for (let at = turn % slices; at < flows.length; at += slices) if (awake || !flows[at].idle) flows[at].tick();
  }, intervalMs / slices);
  const opened = setInterval(() => {
    if (!flows.every((flow) => flow.isOpen())) return;
    clearInterval(opened);
    awake = false;
    process.stdout.write("ready\n");
  }, 20);
  createInterface({ input: process.stdin }).on("line", (line) => {
    if (line === "quiet") quiet = true;
    if (line === "speak") quiet = false;
    if (line === "wake" || line === "doze") awake = line === "wake";
    if (line !== "report") return;
    process.stdout.write(`${JSON.stringify(report(flows))}\n`);
  });
}

function report(flows) {
  const classes = {};
  for (const flow of flows) {
    const nothing = {
      protocol: flow.protocol,
      flows: 0,
      lost: 0,
      sent: 0,
      unanswered: 0,
      longestMs: 0,
      moved: 0,
      astray: 0,
      told: 0,
      servers: [],
      why: [],
    };
    const row = classes[flow.name] ?? nothing;
    classes[flow.name] = row;
    const { sent, answered, longestMs, lost, servers, astray, told } = flow.state();
    row.flows++;
    row.sent += sent;
    row.unanswered += sent - answered;
    row.longestMs = Math.max(row.longestMs, Math.round(longestMs));
    row.astray += astray;
    row.told += told;
    if (lost) row.lost++;
    if (lost && row.why.length < 3) row.why.push(lost);
    if (servers.size > 1) row.moved++;
    row.servers = [...new Set([...row.servers, ...servers])];
  }
  return classes;
}

/** `size`: of what is said. `expects`: the error a socket is told, which is then no loss. */
function start({ name, protocol, host, port, connected = true, size = 0, idle = false, expects = "" }) {
  const servers = new Set();
  let [sent, answered, last, longestMs, lost, astray, open, told] = [0, 0, 0, 0, "", 0, false, 0];
  let [sinceAnswer, askedAt] = [0, 0];
  const words = () => {
    if (sinceAnswer++ === 0) askedAt = performance.now();
    return `${++sent}`.padEnd(size, ".");
  };
  const hear = (line) => {
    const now = performance.now();
    if (last) longestMs = Math.max(longestMs, now - last);
    last = now;
    sinceAnswer = 0;
    const [server, , said = ""] = line.split(" ");
    if (said.length < size) return end("answered in part");
    answered++;
    open = true;
    servers.add(server);
  };
  const end = (reason) => {
    lost ||= reason;
  };
  const fail = (error) => {
    if (!error) return;
    if (error.code !== expects) return end(String(error.code));
    told++;
  };
  // Nobody ends it, and nobody answers: as lost as one that was reset. A single datagram may be lost; TCP would send it again.
  const isSilent = () => sinceAnswer >= (protocol === "udp" ? 3 : 1);
  let from = () => 0;
  const hung = () => {
    if ((expects && !open) || !isSilent() || performance.now() - askedAt <= HUNG_MS) return "";
    return `${open ? "hangs" : "was never answered"}, from port ${from()}`;
  };
  const state = () => ({ sent, answered, longestMs, lost: lost || hung(), astray, servers, told });
  // Where nobody listens it is enough to be told so.
  const isOpen = () => open || (expects === "ECONNREFUSED" && told > 0);
  if (protocol === "udp") {
    const socket = createSocket({ type: host.includes(":") ? "udp6" : "udp4", recvBufferSize: ROOM });
    socket.on("error", fail);
    socket.on("message", (message, { address }) => {
      if (address !== host) astray++;
      hear(String(message));
    });
    if (connected) socket.connect(port, host);
    from = () => socket.address().port;
    const tick = () => {
      if (connected) socket.send(words(), fail);
      else socket.send(words(), port, host, () => {});
    };
    return { name, protocol, state, tick, isOpen, idle };
  }
  const socket = connect({ host, port });
  from = () => socket.localPort;
  let text = "";
  let up = false;
  socket.setNoDelay(true);
  socket.on("connect", () => {
    up = true;
  });
  socket.on("error", (error) => end(String(error.code)));
  socket.on("close", () => end("closed"));
  socket.on("data", (chunk) => {
    text += chunk;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines) hear(line);
  });
  const tick = () => {
    if (!up || lost) return;
    socket.write(`${words()}\n`);
  };
  return { name, protocol, state, tick, isOpen, idle };
}

/** Each time from a port of its own: a datagram, and now and then a connection. */
function knock({ doors, intervalMs }) {
  let [tried, answered] = [0, 0];
  const heard = () => {
    answered++;
  };
  const knockAt = ({ host, port }, protocol) => {
    tried++;
    if (protocol === "udp") {
      const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
      socket.on("error", () => {});
      socket.on("message", heard);
      socket.send("knock", port, host, () => {});
      setTimeout(() => socket.close(), KNOCK_MS);
      return;
    }
    const socket = connect({ host, port });
    socket.on("error", () => {});
    socket.on("connect", heard);
    setTimeout(() => socket.destroy(), KNOCK_MS);
  };
  setInterval(() => {
    const turn = tried;
    knockAt(doors[turn % doors.length], Math.floor(turn / doors.length) % 4 === 0 ? "tcp" : "udp");
  }, intervalMs);
  process.stdout.write("ready\n");
  createInterface({ input: process.stdin }).on("line", (line) => {
    if (line === "report") process.stdout.write(`${JSON.stringify({ tried, answered })}\n`);
  });
}
