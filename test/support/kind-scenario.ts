import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { announcedDataplane } from "../../src/api/protocol/agent-report.ts";
import type { ClusterKind } from "../../src/api/tables/cluster-kinds.ts";
import type { Workload } from "../../src/api/workload-objects.ts";
import { readCliConfig } from "../../src/cli/config.ts";
import { runVendorctl } from "../../src/cli/vendorctl.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { CONFIG_MAPS, DAEMON_SETS, PODS } from "../../src/cluster/kinds.ts";
import { type ClusterOptions, type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import type { Plan } from "../../src/procedures/plan.ts";

export interface Ran {
  exit: number;
  out: string;
  err: string;
}

/** A cluster of one kind, and somebody with vendorctl at hand. */
export interface KindScenario {
  readonly cluster: LocalCluster;
  /** One step of the story: what somebody does, and what they then see. */
  step(title: string, body: () => Promise<void>): void;
  run(...args: string[]): Promise<Ran>;
  /** Fails with what it complained about unless it exits with 0; gives back everything it printed. */
  ok(...args: string[]): Promise<string>;
  /** The plan a command would run, its steps by id. */
  plan(...args: string[]): Promise<{ plan: Plan; steps: string[] }>;
  /** `eBPF on 2 nodes; service proxy parked`. */
  looks(): Promise<string>;
  file(name: string): string;
}

const TIMEOUT = "150s";
/** A machine may have more to do than this story. */
const PATIENCE_MS = 160_000;

/** Told in this process; `reported` does what vendorctl says belongs to another tool, as somebody would who reads the line. */
export function describeKind(
  options: Partial<ClusterOptions> & { kind: ClusterKind },
  told: (line: string, cluster: LocalCluster) => Promise<void> | undefined = () => undefined,
): KindScenario {
  let cluster: LocalCluster | undefined;
  const home = mkdtempSync(join(tmpdir(), "vendorctl-kind-"));
  const kubeconfig = join(home, "kubeconfig");
  const outside = process.env["VENDORCTL_HOME"];
  beforeAll(async () => {
    process.env["VENDORCTL_HOME"] = home;
    cluster = await startCluster({ name: "story", nodes: 2, ...options });
    writeFileSync(kubeconfig, cluster.kubeconfig);
  });
  afterAll(async () => {
    await cluster?.close();
    if (outside === undefined) delete process.env["VENDORCTL_HOME"];
    else process.env["VENDORCTL_HOME"] = outside;
    rmSync(home, { recursive: true, force: true });
  });
  const there = () => {
    if (!cluster) throw new Error("the story has not begun");
    return cluster;
  };
  const run = async (...args: string[]): Promise<Ran> => {
    const ran: Ran = { exit: -1, out: "", err: "" };
    const doing: Promise<void>[] = [];
    ran.exit = await runVendorctl(["--kubeconfig", kubeconfig, "--timeout", TIMEOUT, ...args], {
      config: readCliConfig({}, {}),
      out: (text) => {
        ran.out += text;
      },
      err: (text) => {
        ran.err += text;
        doing.push(told(String(text).trim(), there()) ?? Promise.resolve());
      },
      signal: new AbortController().signal,
      loadClusterCommands: () => import("../../src/local/commands.ts"),
    });
    await Promise.all(doing);
    return ran;
  };
  const ok = async (...args: string[]) => {
    const { exit, out, err } = await run(...args);
    if (exit !== 0) throw new Error(`vendorctl ${args.join(" ")} exited with ${exit}:\n${err}${out}`);
    return err + out;
  };
  return {
    get cluster() {
      return there();
    },
    step: (title, body) => it(title, body, PATIENCE_MS),
    run,
    ok,
    async plan(...args) {
      const { exit, out, err } = await run("-o", "json", "plan", ...args);
      if (exit !== 0) throw new Error(`vendorctl plan ${args.join(" ")} exited with ${exit}: ${err}`);
      const plan = JSON.parse(out) as Plan;
      return { plan, steps: plan.steps.map(({ id }) => id) };
    },
    looks: () => looks(there()),
    file: (name) => join(home, name),
  };
}

/** Does what a line tells about the cluster tool: `kubectl -n kube-system patch configmap cluster-configuration … -p '…'`. */
export function withClusterTool(line: string, { client }: LocalCluster): Promise<void> | undefined {
  const patch = /^kubectl -n kube-system patch configmap cluster-configuration --type merge -p '(.*)'$/s.exec(
    line,
  )?.[1];
  if (patch === undefined) return undefined;
  const ref = { namespace: "kube-system", name: "cluster-configuration" };
  return client.patch(CONFIG_MAPS, ref, { type: "merge", patch: JSON.parse(patch) as object }).then(() => {});
}

async function looks({ client }: LocalCluster): Promise<string> {
  const { items: pods } = await client.list<KubeObject>(PODS, { namespace: "vendor-system" }).catch(nothing);
  const acting = pods.flatMap(({ metadata }) => announcedDataplane(metadata.annotations) ?? []);
  const planes = [...new Set(acting)].join(" and ");
  const on = await client
    .get<KubeObject>(storedKind("dataplaneConfiguration"), { name: "default" })
    .then(({ spec }) => (spec as { bpfEnabled?: boolean }).bpfEnabled === true, ifGone(false));
  const says = planes === "" ? "nothing" : planes === "BPF" ? "eBPF" : planes;
  return `${says}${on === (planes === "BPF") ? "" : " (the switch says otherwise)"} on ${acting.length} nodes; service proxy ${await proxyIn(client)}`;
}

async function proxyIn(client: LocalCluster["client"]): Promise<string> {
  const ref = { namespace: "kube-system", name: "kube-proxy" };
  const proxy = await client.get<Workload & KubeObject>(DAEMON_SETS, ref).catch(ifGone(undefined));
  if (!proxy) return "absent";
  const parked = proxy.spec?.template?.spec?.nodeSelector?.["non-vendor"] === "true";
  return parked ? "parked" : `on ${proxy.status?.numberReady ?? 0} nodes`;
}

const nothing = ifGone({ items: [] as KubeObject[] });

function ifGone<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isNotFound(error)) return value;
    throw error;
  };
}
