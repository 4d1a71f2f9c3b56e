// New connections of one place, as a process of its own: `serve` answers each, `flood` opens so many a second, each for one question, and
// `hold` keeps some. A line `report` on standard input is answered by one line of JSON on standard output.
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

/** A SYN that was lost is sent again after one, three and seven seconds: who is not answered by then is not served. */
const PATIENCE_MS = 10_000;
const TICK_MS = 5;
/** Every so many-th connection asks only after this long, so that there always are some that began a while ago. */
const [LINGERING, LINGER_MS] = [10, 1_000];
const [, , what, ...rest] = process.argv;
const ORDERS = { serve, flood, hold };

// Whoever started us is gone, or wants us gone.
process.stdin.on("end", () => process.exit(0));
const orders = ORDERS[what](...rest.map((one) => JSON.parse(one)));
createInterface({ input: process.stdin }).on("line", (line) => {
  const said = orders[line]();
  if (said !== undefined) process.stdout.write(`${JSON.stringify(said)}\n`);
});

/** `once TIME` is answered and closed, by us, so that the client's port is free again; anything else is only answered. */
function serve(name, port) {
  // When the last of those that came was begun, as its client says.
  let [accepted, lastBegun] = [0, 0];
  const server = createServer((socket) => {
    accepted++;
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk) => {
      for (const line of String(chunk).trim().split("\n")) {
        if (!line.startsWith("once ")) {
          socket.write(`${name}\n`);
          continue;
        }
        lastBegun = Math.max(lastBegun, Number(line.slice(5)));
        socket.end(`${name}\n`);
      }
    });
  });
  server.listen({ port, host: "::", backlog: 4096 }, ready);
  return { report: () => ({ accepted, lastBegun }), refuse: () => void server.close() };
}

function flood({ targets, perSecond }) {
  const open = new Map();
  const nothing = () => ({ ...{ begun: 0, answered: 0, refused: 0, reset: 0, timedOut: 0, other: 0 }, slowestMs: 0 });
  const rows = Object.fromEntries(targets.map(({ name }) => [name, nothing()]));
  let [since, count, turn] = [performance.now(), 0, 0];
  let why = [];
  const KINDS = { ECONNREFUSED: "refused", ECONNRESET: "reset", EPIPE: "reset", ETIMEDOUT: "timedOut" };
  const begin = ({ name, host, port }) => {
    const row = rows[name];
    const [at, began] = [Date.now(), performance.now()];
    const socket = connect({ host, port, noDelay: true });
    let answer = "";
    const end = (code) => {
      if (!open.delete(socket)) return;
      row.slowestMs = Math.max(row.slowestMs, Math.round(performance.now() - began - (lingers ? LINGER_MS : 0)));
      if (code === undefined) row.answered++;
      else row[KINDS[code] ?? "other"]++;
      if (code !== undefined && why.length < 20)
        why.push({ name, code, at, afterMs: Date.now() - at, port: socket.localPort });
    };
    row.begun++;
    open.set(socket, { at, began, giveUp: () => [end("ETIMEDOUT"), socket.destroy()] });
    const ask = () => socket.write(`once ${at}\n`);
    const lingers = row.begun % LINGERING === 0;
    socket.on("connect", () => (lingers ? setTimeout(ask, LINGER_MS) : ask()));
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", ({ code }) => end(code));
    socket.on("close", () => end(answer.endsWith("\n") ? undefined : "closed without an answer"));
  };
  setInterval(() => {
    const now = performance.now();
    // After a pause of the machine what is late is left out, or a burst would be measured, not a rate.
    const due = Math.floor(((now - since) * perSecond) / 1000) - count;
    const some = Math.min(due, Math.ceil(perSecond / 20));
    for (let n = 0; n < some; n++) begin(targets[turn++ % targets.length]);
    count += due;
    for (const { began, giveUp } of open.values()) {
      if (now - began < PATIENCE_MS) break;
      giveUp();
    }
  }, TICK_MS);
  const answered = setInterval(() => {
    if (!Object.values(rows).every((row) => row.answered > 0)) return;
    clearInterval(answered);
    ready();
  }, 20);
  return {
    report: () => {
      const [oldest] = open.values();
      return { rows, oldest: oldest?.at ?? Date.now(), seconds: (performance.now() - since) / 1000, why };
    },
    // Counts from here on.
    anew: () => {
      for (const name of Object.keys(rows)) rows[name] = nothing();
      [since, count, why] = [performance.now(), 0, []];
    },
  };
}

/** Connections that are asked something ten times a second, until told to `end`. */
function hold({ host, port, count }) {
  const held = Array.from({ length: count }, () => {
    const one = { server: "", answers: 0, lost: "" };
    const socket = connect({ host, port, noDelay: true });
    let isEnding = false;
    socket.on("data", (chunk) => {
      const names = String(chunk).trim().split("\n");
      one.answers += names.length;
      one.server ||= names[0];
      if (names.some((name) => name !== one.server)) one.lost ||= "moved";
    });
    socket.on("error", ({ code }) => {
      one.lost ||= code;
    });
    socket.on("close", () => {
      one.lost ||= isEnding ? "" : "closed";
      one.isEnded = true;
    });
    const end = () => {
      isEnding = true;
      socket.end();
    };
    return { one, ask: () => !isEnding && !one.lost && socket.write("hold\n"), end };
  });
  setInterval(() => held.forEach(({ ask }) => void ask()), 100);
  const answered = setInterval(() => {
    if (!held.every(({ one }) => one.answers > 0)) return;
    clearInterval(answered);
    ready();
  }, 20);
  return { report: () => held.map(({ one }) => one), end: () => held.forEach(({ end }) => void end()) };
}

function ready() {
  process.stdout.write("ready\n");
}
