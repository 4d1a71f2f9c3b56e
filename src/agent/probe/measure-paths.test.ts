import { createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { TrafficRow, TrafficSnapshot } from "../../api/protocol/traffic-report.ts";
import { measurePaths, type PathToMeasure } from "./measure-paths.ts";
import { TIMEOUT_MS } from "./measured-path.ts";
import { PauseMeter, Silence } from "./pause-meter.ts";
import { type ProbeServer, serveProbe } from "./probe-server.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function serve(ports: Parameters<typeof serveProbe>[0] = { tcp: [0], udp: [0] }): Promise<ProbeServer> {
  const server = await serveProbe(ports, "pod-a");
  ends.push(() => server.close());
  return server;
}

/** Measures until a snapshot is as wanted, and gives it. */
async function measureUntil(ways: PathToMeasure[], wanted: (rows: readonly TrafficRow[]) => boolean) {
  const stop = new AbortController();
  let last: TrafficSnapshot | undefined;
  const tell = (snapshot: TrafficSnapshot) => {
    last = snapshot;
    if (wanted(snapshot.rows)) stop.abort();
  };
  await measurePaths(ways, { every: 5, churn: 20, report: 20, onSnapshot: tell, signal: stop.signal });
  return (last?.rows ?? []).map((row) => ({ ...row, key: `${row.way} ${row.protocol}` }));
}

const at = (port: number, udp = port, way = "near"): PathToMeasure => ({
  path: way,
  host: "127.0.0.1",
  tcp: port,
  udp,
});

describe("a way that is measured", () => {
  it("counts connections that were kept, those that came and went, and datagrams, and loses none where all is well", async () => {
    const { ports } = await serve();
    const way = at(ports.tcp[0] as number, ports.udp[0]);
    const rows = await measureUntil([way], ([tcp, udp]) => (tcp?.opened ?? 0) > 5 && (udp?.sent ?? 0) > 30);
    expect(rows.map(({ key, reached, lost, unanswered }) => [key, reached, lost, unanswered])).toEqual([
      ["near tcp", true, 0, 0],
      ["near udp", true, 0, 0],
    ]);
  });

  it("counts a kept connection that breaks, and each new one that is refused", async () => {
    const server = await serve({ tcp: [0], udp: [] });
    let broken = false;
    const rows = await measureUntil([at(server.ports.tcp[0] as number, 9)], ([tcp]) => {
      if (!broken && (tcp?.opened ?? 0) > 2) {
        broken = true;
        void server.close();
        ends.splice(0);
      }
      return broken && (tcp?.lost ?? 0) > 3;
    });
    expect(rows[0]).toMatchObject({ reached: true });
    expect(rows[0]?.silenceMs).toBeGreaterThan(0);
  });

  it("counts nothing of a way that nobody ever answered, and says that it was not reached", async () => {
    let looks = 0;
    const rows = await measureUntil([at(1, 1)], () => ++looks > 10);
    expect(rows).toMatchObject([
      { reached: false, opened: 0, lost: 0 },
      { reached: false, sent: 0, unanswered: 0 },
    ]);
  });

  it("hears the silence of a server that holds its tongue, though no connection breaks", async () => {
    let quiet = false;
    const open = new Set<Socket>();
    const server: Server = createServer((socket) => {
      open.add(socket);
      socket.write("{}\n");
      socket.on("error", () => {}).on("data", (data) => (quiet ? undefined : socket.write(data)));
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    ends.push(async () => {
      for (const socket of open) socket.destroy();
      await new Promise((done) => server.close(done));
    });
    const { port } = server.address() as { port: number };
    const [tcp] = await measureUntil([at(port, 9)], ([row]) => {
      quiet ||= (row?.opened ?? 0) > 0;
      return (row?.silenceMs ?? 0) > 300;
    });
    expect(tcp?.silenceMs).toBeGreaterThan(300);
  });
});

describe("our own pauses", () => {
  it("lose no connection and no datagram, however long: what came meanwhile is read first", async () => {
    const { ports } = await serve();
    let stood = false;
    const rows = await measureUntil([at(ports.tcp[0] as number, ports.udp[0])], ([tcp, udp]) => {
      if (!stood && (tcp?.opened ?? 0) > 2) {
        stood = true;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TIMEOUT_MS + 100);
      }
      return stood && (tcp?.opened ?? 0) > 10 && (udp?.sent ?? 0) > 30;
    });
    expect(rows.map(({ key, lost, unanswered }) => [key, lost, unanswered])).toEqual([
      ["near tcp", 0, 0],
      ["near udp", 0, 0],
    ]);
  });

  it("are no silence of the network", () => {
    const awake = new PauseMeter(40, 0);
    const silence = new Silence(awake);
    silence.reset(10);
    silence.reset(1010);
    expect(silence.longestMs(1010)).toBeLessThanOrEqual(45);
    for (let now = 1050; now <= 2010; now += 40) awake.note(now);
    expect(silence.longestMs(2010)).toBeGreaterThanOrEqual(1000);
  });
});
