// Traffic of one place, as a process of its own: `serve PORT` answers, `talk` keeps connections and says what became of them.
// A line `report` on standard input is answered by one line of JSON per class on standard output.
import { createSocket } from "node:dgram";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

const HUNG_MS = 5_000;
/** Sooner than whoever waits for us gives up: it shall know whom we wait for. */
const LATE_MS = 15_000;
const [, , what, ...rest] = process.argv;

// Whoever started us is gone, or wants us gone.
process.stdin.on("end", () => process.exit(0));
if (what === "serve") process.stdin.resume();
if (what === "serve") serve(rest[0], Number(rest[1]));
else talk(JSON.parse(rest[0]));

/** Every line comes back with the name of who answered. */
function serve(name, port) {
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
  }).listen({ port, host: "::", backlog: 1024 }, () => {
    const udp = createSocket({ type: "udp6" });
    udp.on("message", (message, { address, port: to }) => udp.send(`${name} ${address} ${message}`, to, address));
    udp.bind(port, "::", () => process.stdout.write("ready\n"));
  });
}

function talk({ flows: wanted, intervalMs }) {
  const flows = wanted.flatMap(({ count, ...one }) => Array.from({ length: count }, () => start(one)));
  let quiet = false;
  // Spread over the interval, so that a burst is never the cause of a silence.
  const slices = 20;
  let turn = 0;
  setInterval(() => {
    turn++;
    if (quiet) return;
    for (let at = turn % slices; at < flows.length; at += slices) flows[at].tick();
  }, intervalMs / slices);
  const opened = setInterval(() => {
    if (!flows.every((flow) => flow.isOpen())) return;
    clearInterval(opened);
    clearTimeout(late);
    process.stdout.write("ready\n");
  }, 20);
  const late = setTimeout(() => {
    for (const flow of flows.filter(({ isOpen }) => !isOpen()))
      process.stderr.write(`not open: ${flow.name}, from port ${flow.port()}, sent ${flow.state().sent}\n`);
  }, LATE_MS);
  createInterface({ input: process.stdin }).on("line", (line) => {
    if (line === "quiet") quiet = true;
    if (line === "speak") quiet = false;
    if (line !== "report") return;
    process.stdout.write(`${JSON.stringify(report(flows))}\n`);
  });
}

function report(flows) {
  const classes = {};
  for (const flow of flows) {
    const nothing = { flows: 0, lost: 0, sent: 0, unanswered: 0, longestMs: 0, moved: 0, astray: 0, why: [] };
    const row = classes[flow.name] ?? nothing;
    classes[flow.name] = row;
    const { sent, answered, longestMs, lost, servers, astray } = flow.state();
    row.flows++;
    row.sent += sent;
    row.unanswered += sent - answered;
    row.longestMs = Math.max(row.longestMs, Math.round(longestMs));
    row.astray += astray;
    if (lost) row.lost++;
    if (lost && row.why.length < 3) row.why.push(lost);
    if (servers > 1) row.moved++;
  }
  return classes;
}

function start({ name, protocol, host, port, connected = true }) {
  const servers = new Set();
  let [sent, answered, last, longestMs, lost, astray, open] = [0, 0, 0, 0, "", 0, false];
  const hear = (line) => {
    const now = performance.now();
    if (last) longestMs = Math.max(longestMs, now - last);
    last = now;
    answered++;
    open = true;
    servers.add(line.split(" ", 1)[0]);
  };
  const end = (reason) => {
    lost ||= reason;
  };
  // Nobody ends it, and nobody answers: as lost as one that was reset.
  const hung = () => (open && sent > answered && performance.now() - last > HUNG_MS ? "hangs" : "");
  const state = () => ({ sent, answered, longestMs, lost: lost || hung(), astray, servers: servers.size });
  if (protocol === "udp") {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    socket.on("error", (error) => end(String(error.code)));
    socket.on("message", (message, { address }) => {
      if (address !== host) astray++;
      hear(String(message));
    });
    if (connected) socket.connect(port, host);
    const tick = () => {
      sent++;
      if (connected) socket.send(`${sent}`, () => {});
      else socket.send(`${sent}`, port, host, () => {});
    };
    return { name, state, tick, isOpen: () => open, port: () => socket.address().port };
  }
  const socket = connect({ host, port });
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
    sent++;
    socket.write(`${sent}\n`);
  };
  return { name, state, tick, isOpen: () => open, port: () => socket.localPort };
}
