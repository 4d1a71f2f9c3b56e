import type { CompletionSource } from "./flags.ts";
import type { CliContext, GlobalFlags, Session } from "./session.ts";

/** The words on the command line, which say which cluster is meant. */
export interface CompletionWords {
  world: CliContext;
  words: readonly string[];
}

/** A shell waits while the user has pressed a key: later than this is never. */
const PATIENCE_MS = 2000;

type Source = CompletionSource | "clusters";

/** Names to complete with. A completion that cannot be had is none: the shell shows no errors while a line is typed. */
export async function lookUp(source: Source, asked: CompletionWords): Promise<string[]> {
  return await SOURCES[source](sessionOf(asked)).catch(() => []);
}

/** The names of a kind of v3 resource. */
export async function lookUpNames(kind: string, asked: CompletionWords): Promise<string[]> {
  return await namesOf(sessionOf(asked), kind).catch(() => []);
}

const SOURCES: Readonly<Record<Source, (session: Session) => Promise<string[]>>> = {
  async checks() {
    const { CHECKS } = await import("../procedures/checks/all.ts");
    return CHECKS.map(({ code }) => code);
  },
  async codes() {
    const { CHECKS } = await import("../procedures/checks/all.ts");
    const { EXPLANATIONS } = await import("../api/validation/explain.ts");
    const { definedCodes } = await import("../kit/errors.ts");
    const { ERROR_SETS } = await import("./error-sets.ts");
    await Promise.all(Object.values(ERROR_SETS).map((load) => load()));
    return [...CHECKS.map(({ code }) => code), ...Object.keys(EXPLANATIONS), ...definedCodes()];
  },
  async clusters(session) {
    const commands = await session.loadClusterCommands();
    return (await commands.list()).map(({ name }) => name);
  },
  async contexts({ flags }) {
    const { contextNames } = await import("../cluster/kubeconfig.ts");
    return contextNames(flags.kubeconfig === undefined ? {} : { kubeconfig: flags.kubeconfig });
  },
  async kinds(session) {
    const { v3Places } = await import("../api/resources/v3-places.ts");
    const { nameSet } = await import("./name-set.ts");
    return v3Places(nameSet(session)).map(({ served }) => served.plural);
  },
  async namespaces(session) {
    const { NAMESPACES } = await import("../cluster/kinds.ts");
    return await listed(session, NAMESPACES);
  },
  async nodes(session) {
    const { NODES } = await import("../cluster/kinds.ts");
    return await listed(session, NODES);
  },
  async runs(session) {
    const { withEngine } = await import("./commands/runs/open-engine.ts");
    const { listRuns } = await import("../procedures/run/engine.ts");
    return await withEngine(session, {}, async (engine) => (await listRuns(engine)).map(({ id }) => id));
  },
};

async function listed(session: Session, type: typeof import("../cluster/kinds.ts").NODES): Promise<string[]> {
  const { withCluster } = await import("./connect.ts");
  return await withCluster(session, async (client, signal) => {
    const { items } = await client.list(type, { signal });
    return items.map(({ metadata }) => metadata.name);
  });
}

async function namesOf(session: Session, kind: string): Promise<string[]> {
  const { withResources } = await import("./commands/resources/open-resources.ts");
  const { findKind } = await import("../procedures/resources/find-kind.ts");
  return await withResources(session, {}, async ({ store, names, namespace }) => {
    const place = findKind(kind, names);
    const objects = await store.list(place, place.served.namespaced ? { namespace } : {});
    return objects.map(({ metadata }) => metadata.name);
  });
}

/** What the words already say about the cluster: the flags a command would be run with. */
function sessionOf({ world, words }: CompletionWords): Session {
  const after = (...names: readonly string[]) => {
    const at = words.findLastIndex((word) => names.includes(word.split("=", 1)[0] as string));
    if (at < 0) return undefined;
    const word = words[at] as string;
    return word.includes("=") ? word.slice(word.indexOf("=") + 1) : words[at + 1];
  };
  const kubeconfig = after("--kubeconfig");
  const context = after("--context");
  const namespace = after("-n", "--namespace");
  const flags: GlobalFlags = {
    output: "table",
    color: false,
    quiet: true,
    v: 0,
    timeout: PATIENCE_MS,
    names: after("--names") === "calico" ? "calico" : "vendor",
    ...(kubeconfig !== undefined && { kubeconfig }),
    ...(context !== undefined && { context }),
    ...(namespace !== undefined && { namespace }),
  };
  const signal = AbortSignal.any([world.signal, AbortSignal.timeout(PATIENCE_MS)]);
  return { ...world, signal, err: () => {}, flags };
}
