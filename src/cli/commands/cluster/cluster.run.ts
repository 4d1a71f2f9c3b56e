import { errors } from "../../errors.ts";
import { formatPairs, print } from "../../printer.ts";
import { openProgress } from "../../progress.ts";
import type { Session } from "../../session.ts";
import { withinTimeout } from "../../within-timeout.ts";
import { DEFAULT_NAME } from "./cluster.command.ts";
import type { ClusterSummary, UpOptions } from "./cluster-commands.ts";

interface Named {
  name: string;
}

const ABOUT_INSTALLED = [
  ["method", "--method"],
  ["temporaryPolicy", "--temporary-policy"],
  ["userEdits", "--user-edits"],
] as const;

type UpFlags = Omit<UpOptions, "runtime" | "detach"> & {
  runtime?: UpOptions["runtime"];
  paper?: true;
  detach?: true;
};

export async function up(session: Session, flags: UpFlags): Promise<void> {
  const { paper, ...others } = flags;
  if (paper && flags.runtime && flags.runtime !== "paper") {
    throw errors.USAGE(`--paper contradicts --runtime ${flags.runtime}`, "omit one of them");
  }
  const runtime = paper ? "paper" : (flags.runtime ?? "auto");
  const options: UpOptions = { ...others, runtime, detach: flags.detach ?? false };
  const asked = ABOUT_INSTALLED.find(([name]) => options[name] !== undefined);
  if (asked && !options.installed) {
    throw errors.USAGE(`${asked[1]} needs an older version`, "add --installed with that version, such as v3.27");
  }
  const commands = await session.loadClusterCommands();
  const progress = await openProgress(session);
  const { cluster, stopped } = await withinTimeout(session, (signal) =>
    commands.up(options, { signal, report: progress.report }),
  ).finally(() => progress.close());
  progress.result(cluster);
  await show(session, cluster);
  if (!stopped) return;
  progress.report({ event: "note", text: "running until you press Ctrl-C" });
  await stopped;
}

async function show(session: Session, cluster: ClusterSummary): Promise<void> {
  // With -o json the result is already the last line of the progress.
  if (session.flags.output === "yaml") return print(session, cluster, () => clusterTable([cluster]));
  if (session.flags.output === "table")
    session.out(await formatPairs(describeCluster(cluster), session.config.outColumns));
}

function describeCluster(cluster: ClusterSummary): [string, string][] {
  // Nodes that are registered lack nothing but a CNI.
  const count = cluster.nodes - cluster.nodesReady;
  const waiting = count > 0 ? `; ${count} wait for a CNI` : "";
  return [
    ["cluster", `${cluster.name} (${cluster.kind}), ${cluster.nodesReady} of ${cluster.nodes} nodes ready${waiting}`],
    ["API server", cluster.server],
    ["kubeconfig", cluster.kubeconfig],
    ...(cluster.flowUI ? [["flow UI", cluster.flowUI] as [string, string]] : []),
    ["next", useCommand(cluster.name)],
  ];
}

/** Shorter than the path, which may be wider than a terminal. */
function useCommand(name: string): string {
  const named = name === DEFAULT_NAME ? "" : ` --name ${name}`;
  return `export KUBECONFIG=$(vendorctl cluster kubeconfig${named})`;
}

export async function down(session: Session, { name }: Named): Promise<void> {
  const commands = await session.loadClusterCommands();
  const progress = await openProgress(session);
  const existed = await withinTimeout(session, (signal) =>
    commands.down({ name }, { signal, report: progress.report }),
  ).finally(() => progress.close());
  progress.result({ name, existed });
  if (session.flags.output === "table" && !session.flags.quiet) {
    session.out(existed ? `cluster ${name} is removed\n` : `there is no cluster ${name}\n`);
  }
}

export async function list(session: Session): Promise<void> {
  const commands = await session.loadClusterCommands();
  const clusters = await commands.list();
  await print(session, clusters, () => clusterTable(clusters));
}

function clusterTable(clusters: readonly ClusterSummary[]) {
  return {
    columns: ["NAME", "KIND", "STATE", "NODES", "SERVER"],
    rows: clusters.map(({ name, kind, state, nodes, nodesReady, server }) => [
      name,
      kind,
      state,
      `${nodesReady}/${nodes}`,
      server,
    ]),
    empty: "no clusters; start one with: vendorctl cluster up",
  };
}

export async function kubeconfig(session: Session, { name }: Named): Promise<void> {
  const commands = await session.loadClusterCommands();
  const path = await commands.kubeconfig({ name });
  if (session.flags.output === "table") session.out(`${path}\n`);
  else await print(session, { name, kubeconfig: path }, () => ({ columns: [], rows: [] }));
}

export async function logs(session: Session, flags: Named & { follow?: true; tail?: number }): Promise<void> {
  const options = { ...flags, follow: flags.follow ?? false, signal: session.signal };
  const commands = await session.loadClusterCommands();
  for await (const line of commands.logs(options)) session.out(`${line}\n`);
}
