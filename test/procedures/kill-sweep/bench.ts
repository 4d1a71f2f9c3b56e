import { type LocalCluster, startCluster } from "../../../src/local/cluster.ts";
import { kubeconfigFor } from "../../../src/local/kubeconfig-file.ts";
import { type ClusterState, settledState, stateDifferences, untilState } from "../../support/procedure-state.ts";
import type { Call } from "./call.ts";
import { type CountingProxy, type Moment, startCountingProxy } from "./counting-proxy.ts";
import type { SweptProcedure, SweptPrograms } from "./procedures.ts";
import { type Ended, openTool, type Tool } from "./tool-process.ts";

export type Interruption = "there" | "back";

/** A cluster in the initial state of a procedure, and a vendorctl whose every call is seen. */
export interface Bench {
  procedure: SweptProcedure;
  initial: ClusterState;
  proxy: CountingProxy;
  /** The whole way, undisturbed; gives the calls it made. */
  go(way: Interruption): Promise<readonly Call[]>;
  /** One process, killed at the first call that is aimed at. */
  struck(aim: (call: Call) => Moment | undefined, argv: readonly string[]): Promise<Ended>;
  /** What a person types next on this way, after whatever ended the last process; nothing where it is over. */
  next(way: Interruption): readonly string[] | undefined;
  run(argv: readonly string[]): Promise<Ended>;
  state(): Promise<ClusterState>;
  /** What differs from a state, when the cluster has had its time. */
  unlike(expected: ClusterState): Promise<string[]>;
  close(): Promise<void>;
}

/** Machines that test are busy; one that recovers at all does so long before. */
const PATIENCE_MS = 60_000;

export async function openBench(procedure: SweptProcedure): Promise<Bench> {
  const cluster = await startCluster({ name: "sweep", ...procedure.cluster });
  const proxy = await startCountingProxy(cluster);
  const programs = await procedure.programs?.(cluster);
  const tool = openTool(kubeconfigFor("sweep", proxy.url, cluster.keys), { programs: programs?.folder });
  const close = async () => {
    tool.close();
    await programs?.close();
    await proxy.close();
    await cluster.close();
  };
  try {
    return { ...(await prepared(procedure, { cluster, proxy, tool, kept: programs?.state })), close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Opened {
  cluster: LocalCluster;
  proxy: CountingProxy;
  tool: Tool;
  kept: SweptPrograms["state"] | undefined;
}

const OUTSIDE = "outside ";
const isOutside = (name: string) => name.startsWith(OUTSIDE);
const outside = (kept: ReadonlyMap<string, unknown>): ClusterState =>
  new Map([...kept].map(([name, value]) => [`${OUTSIDE}${name}`, value]));

async function prepared(
  procedure: SweptProcedure,
  { cluster, proxy, tool, kept = async () => new Map() }: Opened,
): Promise<Omit<Bench, "close">> {
  const settled = async () => new Map([...(await settledState(cluster.client)), ...outside(await kept())]);
  const run: Bench["run"] = (argv) => {
    proxy.disarm();
    return tool.run(...argv, "-y");
  };
  await procedure.seed?.(cluster);
  for (const argv of procedure.before ?? []) must(await run(argv));
  const commands: Record<Interruption, readonly string[]> = { there: procedure.argv, back: ["rollback"] };
  return {
    procedure,
    initial: await settled(),
    proxy,
    run,
    async go(way) {
      must(await run(commands[way]));
      return proxy.calls;
    },
    async struck(aim, argv) {
      const victim: { process?: ReturnType<Tool["start"]> } = {};
      proxy.arm(aim, async () => victim.process?.kill());
      victim.process = tool.start(...argv, "-y");
      return await victim.process.ended;
    },
    next(way) {
      const { heading, outcome } = proxy.record ?? {};
      const isThisWay = heading === (way === "there" ? "forward" : "back");
      if (isThisWay && (outcome === "running" || outcome === "stopped")) return ["resume"];
      return isThisWay && outcome === (way === "there" ? "done" : "rolled-back") ? undefined : commands[way];
    },
    state: settled,
    async unlike(expected) {
      const [there, inside] = [true, false].map(
        (is) => new Map([...expected].filter(([name]) => isOutside(name) === is)),
      );
      const differences = await untilState(cluster.client, inside!, PATIENCE_MS);
      return [...differences, ...stateDifferences(there!, outside(await kept()))];
    },
  };
}

function must(ended: Ended): void {
  if (ended.status !== 0) throw new Error(`vendorctl ended with ${lastOutput(ended)}`);
}

export const lastOutput = ({ err, out, status, signal }: Ended) =>
  `${status ?? signal}: ${(err || out).trim().split("\n").slice(-3).join(" | ")}`;
