import type { Clock } from "../../kit/clock.ts";
import type { ClusterCommands, ClusterSummary } from "../commands/cluster/cluster-commands.ts";
import { type CliConfig, readCliConfig } from "../config.ts";
import { runVendorctl } from "../vendorctl.ts";

const DEMO: ClusterSummary = {
  name: "demo",
  kind: "generic",
  state: "Ready",
  nodes: 3,
  nodesReady: 3,
  server: "https://127.0.0.1:6443",
  kubeconfig: "/tmp/demo/kubeconfig",
};

/** An embedded cluster that is ready at once; `calls` tells what was asked of it. */
export function fakeClusterCommands(calls: unknown[]): ClusterCommands {
  return {
    async up(options, { report }) {
      calls.push(["up", options]);
      report({ event: "step", id: "api", state: "running", text: "API server" });
      report({ event: "step", id: "api", state: "done", text: "API server is up" });
      const { name, kind, nodes } = options;
      const cluster = { ...DEMO, name, kind, nodes, nodesReady: nodes };
      return options.detach ? { cluster } : { cluster, stopped: Promise.resolve() };
    },
    async down(options) {
      calls.push(["down", options]);
      return options.name === "demo";
    },
    list: async () => [DEMO],
    kubeconfig: async ({ name }) => `/tmp/${name}/kubeconfig`,
    releaseBefore: async () => ({ version: "v3.31.2", url: "file:///tmp/releases/v3.31.2" }),
    async *logs({ tail = 3 }) {
      yield* ["one", "two", "three"].slice(-tail);
    },
  };
}

/** Runs one command line the way main.ts does, and keeps what came out. */
export async function vendorctl(
  argv: string[],
  options: { commands?: ClusterCommands; config?: Partial<CliConfig>; clock?: Clock } = {},
) {
  const calls: unknown[] = [];
  let out = "";
  let err = "";
  const exit = await runVendorctl(argv, {
    config: { ...readCliConfig({}, {}), ...options.config },
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    signal: new AbortController().signal,
    ...(options.clock && { clock: options.clock }),
    loadClusterCommands: async () => options.commands ?? fakeClusterCommands(calls),
  });
  return { exit, out, err, calls };
}
