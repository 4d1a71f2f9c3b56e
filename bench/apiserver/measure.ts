import { median } from "../run.ts";
import { Connection, type Endpoint } from "./connection.ts";
import { fanOut } from "./fan-out.ts";
import { configMap, pod } from "./objects.ts";

/** What the client sees of a server. */
export interface Figures {
  creates: number;
  updates: number;
  gets: number;
  podBytes: number;
  listMs: number;
  listMBps: number;
  pagedMs: number;
  watchP50: number;
  watchP99: number;
}

/** Between two measurements: where the server's own figures are read. */
export type Milestone = "pods" | "lists";

const WRITERS = 32;
const PODS = 10_000;
const PAGE = 500;
const LISTS = 5;
const WARM_UP_MS = 1_000;
const MEASURE_MS = 4_000;
/** Updates and gets go round these. */
const NAMES = 64;

/** The same work for any server, in a namespace of its own that is gone afterwards. */
export async function measure(endpoint: Endpoint, reached: (milestone: Milestone) => void): Promise<Figures> {
  const connections = await Promise.all(Array.from({ length: WRITERS }, () => Connection.open(endpoint)));
  const [first] = connections as [Connection];
  const namespace = `bench-${process.pid}`;
  const home = `/api/v1/namespaces/${namespace}`;
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  await first.expect("POST", "/api/v1/namespaces", JSON.stringify(body));
  try {
    await ensureServiceAccount(first, home);
    await loadPods(connections, `${home}/pods`);
    reached("pods");
    const lists = await measureLists(first, `${home}/pods`);
    reached("lists");
    const rates = await measureRates(connections, `${home}/configmaps`);
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

async function measureRates(connections: readonly Connection[], path: string) {
  const creates = await rate(connections, (connection, writer, count) =>
    connection.expect("POST", path, configMap(`map-${writer}-${count}`, "value")),
  );
  const updates = await rate(connections, (connection, writer, count) =>
    connection.expect(
      "PUT",
      `${path}/map-${writer}-${count % NAMES}`,
      configMap(`map-${writer}-${count % NAMES}`, `${count}`),
    ),
  );
  const gets = await rate(connections, (connection, writer, count) =>
    connection.expect("GET", `${path}/map-${writer}-${count % NAMES}`),
  );
  return { creates, updates, gets };
}

type Operation = (connection: Connection, writer: number, count: number) => Promise<unknown>;

/** Operations a second, every connection busy all the time. */
async function rate(connections: readonly Connection[], operation: Operation): Promise<number> {
  const begin = performance.now() + WARM_UP_MS;
  const end = begin + MEASURE_MS;
  let counted = 0;
  const work = async (connection: Connection, writer: number) => {
    // At least as many as later operations go round.
    for (let count = 0, now = 0; now < end || count < NAMES; count++) {
      await operation(connection, writer, count);
      now = performance.now();
      if (now >= begin && now < end) counted++;
    }
  };
  await Promise.all(connections.map(work));
  return counted / (MEASURE_MS / 1e3);
}
