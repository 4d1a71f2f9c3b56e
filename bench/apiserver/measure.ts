import { median } from "../run.ts";
import { Connection, type Endpoint } from "./connection.ts";
import { fanOut } from "./fan-out.ts";
import { configMap, pod } from "./objects.ts";

/** What the client sees of a server. */
export interface Figures {
  creates: number;
  createCpuUs: number;
  updates: number;
  updateCpuUs: number;
  gets: number;
  getCpuUs: number;
  podBytes: number;
  listMs: number;
  listMBps: number;
  pagedMs: number;
  watchP50: number;
  watchP99: number;
}

/** Whoever can look at the server's process. */
export interface Observer {
  /** All pods are there, and nothing else has happened yet. */
  loaded(): void;
  /** What the server has used so far. Unlike a rate it does not depend on what else the machine is doing. */
  cpuMs(): number;
}

const WRITERS = 32;
const PODS = 10_000;
const PAGE = 500;
const LISTS = 5;
/** Operations of each connection that count, after a fifth of them that do not. A fixed number, or a faster server would end up with more objects to hold. */
const SHARE = { creates: 200, updates: 200, gets: 800 };
/** A slow server is measured for this long, however few it makes. */
const LONGEST_MS = 8_000;
/** Updates and gets go round these: the first that were created. */
const NAMES = 40;

/** The same work for any server, in a namespace of its own that is gone afterwards. */
export async function measure(endpoint: Endpoint, observer: Observer): Promise<Figures> {
  const connections = await Promise.all(Array.from({ length: WRITERS }, () => Connection.open(endpoint)));
  const [first] = connections as [Connection];
  const namespace = `bench-${process.pid}`;
  const home = `/api/v1/namespaces/${namespace}`;
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  await first.expect("POST", "/api/v1/namespaces", JSON.stringify(body));
  try {
    await ensureServiceAccount(first, home);
    await loadPods(connections, `${home}/pods`);
    observer.loaded();
    const lists = await measureLists(first, `${home}/pods`);
    const rates = await measureRates(connections, `${home}/configmaps`, () => observer.cpuMs());
    const watches = await fanOut(endpoint, first, `${home}/configmaps`);
    return { ...lists, ...rates, ...watches };
  } finally {
    await first.request("DELETE", home);
    for (const connection of connections) connection.close();
  }
}

/** A real cluster makes it by itself, a little later, and takes no pods before. */
async function ensureServiceAccount(connection: Connection, home: string): Promise<void> {
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default" } };
  await connection.request("POST", `${home}/serviceaccounts`, JSON.stringify(account));
}

async function loadPods(connections: readonly Connection[], path: string): Promise<void> {
  let next = 0;
  const load = async (connection: Connection) => {
    while (next < PODS) await connection.expect("POST", path, pod(`app-6f7c9d8b54-${String(next++).padStart(5, "0")}`));
  };
  await Promise.all(connections.map(load));
}

async function measureLists(connection: Connection, path: string) {
  const times: number[] = [];
  const paged: number[] = [];
  let bytes = 0;
  for (let round = 0; round < LISTS; round++) {
    const started = performance.now();
    bytes = (await connection.expect("GET", path)).length;
    times.push(performance.now() - started);
    paged.push(await timePages(connection, path));
  }
  const listMs = median(times);
  return { podBytes: bytes / PODS, listMs, listMBps: bytes / 1e6 / (listMs / 1e3), pagedMs: median(paged) };
}

async function timePages(connection: Connection, path: string): Promise<number> {
  const started = performance.now();
  for (let more: string | undefined = ""; more !== undefined; ) {
    const text = await connection.expect("GET", `${path}?limit=${PAGE}${more && `&continue=${more}`}`);
    // The list's metadata comes before its items here and in Go's encoding alike; parsing a page would be the client's time.
    more = /"continue":"([^"]+)"/.exec(text.toString("utf8", 0, 1000))?.[1];
  }
  return performance.now() - started;
}

async function measureRates(connections: readonly Connection[], path: string, cpuMs: () => number) {
  const name = (writer: number, count: number) => `map-${writer}-${count % NAMES}`;
  const creates = await rate(connections, SHARE.creates, cpuMs, (connection, writer, count) =>
    connection.expect("POST", path, configMap(`map-${writer}-${count}`, "value")),
  );
  const updates = await rate(connections, SHARE.updates, cpuMs, (connection, writer, count) =>
    connection.expect("PUT", `${path}/${name(writer, count)}`, configMap(name(writer, count), `value ${count}`)),
  );
  const gets = await rate(connections, SHARE.gets, cpuMs, (connection, writer, count) =>
    connection.expect("GET", `${path}/${name(writer, count)}`),
  );
  return {
    creates: creates.perSecond,
    createCpuUs: creates.cpuUs,
    updates: updates.perSecond,
    updateCpuUs: updates.cpuUs,
    gets: gets.perSecond,
    getCpuUs: gets.cpuUs,
  };
}

type Operation = (connection: Connection, writer: number, count: number) => Promise<unknown>;

/** Operations a second, every connection busy all the time. Each counts its own, so that a slow one keeps nobody waiting. */
async function rate(connections: readonly Connection[], share: number, cpuMs: () => number, operation: Operation) {
  const warmUp = Math.ceil(share / 5);
  const round = (from: number, to: number, until: number) =>
    connections.map(async (connection, writer) => {
      let count = from;
      for (; count < to && performance.now() < until; count++) await operation(connection, writer, count);
      return count - from;
    });
  await Promise.all(round(0, warmUp, Number.POSITIVE_INFINITY));
  const started = performance.now();
  const usedBefore = cpuMs();
  const counts = await Promise.all(round(warmUp, warmUp + share, started + LONGEST_MS));
  const done = counts.reduce((sum, count) => sum + count, 0);
  const cpuUs = ((cpuMs() - usedBefore) * 1e3) / done;
  return { perSecond: done / ((performance.now() - started) / 1e3), cpuUs };
}
