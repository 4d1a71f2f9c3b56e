import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeObject } from "../../src/api/object.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { LEASES, NAMESPACES } from "../../src/cluster/kinds.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { PARTS } from "../../src/operator/outcome.ts";
import { differentFrom, type EndState, endState } from "../support/operator-end-state.ts";
import {
  applyAll,
  applyOperator,
  customResources,
  documents,
  endpointMap,
  withFlowLogs,
} from "../support/operator-manifests.ts";
import { bundleVendor, type OperatorProcess, startOperatorProcess } from "../support/operator-process.ts";
import { type FaultProxy, startFaultProxy } from "../support/operator-proxy.ts";
import { listEverything } from "../support/operator-snapshot.ts";
import { allStatuses } from "../support/operator-status.ts";

/** What somebody asks for, and when it has come about. Each begins where the one before ended, and the last where the first began. */
export interface Phase {
  name: string;
  begin(world: OperatorRestarts): Promise<void>;
  isOver(world: OperatorRestarts): Promise<boolean>;
}

const RESOURCES = ["flowUI", "flowLogs", "apiServer", "installation"] as const;

export const PHASES: readonly Phase[] = [
  {
    name: "install",
    begin: ({ client }) => {
      const file = customResources("linuxDataplane: Nftables").replace("Management: Disabled", "Management: Enabled");
      return applyAll(client, documents(withFlowLogs(file)));
    },
    isOver: (world) => world.says("network", /^The nftables data plane runs on 2 nodes/),
  },
  {
    name: "switch",
    async begin({ client }) {
      const patch = { spec: { vendorNetwork: { linuxDataplane: "BPF", hostPorts: null } } };
      await client.patch(storedKind("installation"), { name: "default" }, { type: "merge", patch });
    },
    isOver: async (world) =>
      (await world.says("network", /^eBPF runs on 2 nodes/)) &&
      (await world.says("service-proxy", /kube-proxy is disabled/)),
  },
  {
    name: "removal",
    async begin({ client }) {
      for (const noun of RESOURCES) await client.delete(storedKind(noun), { name: "default" });
    },
    async isOver({ client }) {
      // The statuses go last: a part that nobody asks for any more has none.
      const left = await Promise.all(([...RESOURCES, "status"] as const).map((noun) => client.list(storedKind(noun))));
      const system = await client.get(NAMESPACES, { name: "vendor-system" }).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
      return left.every(({ items }) => items.length === 0) && system === undefined;
    },
  },
];

/** How long an operator may take to come to the state that is expected of it. */
const PATIENCE_MS = 60_000;

/** An embedded cluster whose operator is a process outside it, reached through a proxy that knows every request. */
export class OperatorRestarts {
  cluster: LocalCluster;
  readonly proxy: FaultProxy;
  readonly #folder: string;
  readonly #executable: string;
  #life: OperatorProcess | undefined;

  static async start(): Promise<OperatorRestarts> {
    const folder = mkdtempSync(join(tmpdir(), "operator-lives-"));
    const executable = await bundleVendor(join(folder, "bundle"));
    const cluster = await startCluster(clusterIn(folder));
    const { client } = cluster;
    await applyOperator(client, 0);
    await applyAll(client, documents(endpointMap("generic", cluster) ?? ""));
    return new OperatorRestarts(folder, executable, cluster, await startFaultProxy(cluster.server));
  }

  private constructor(folder: string, executable: string, cluster: LocalCluster, proxy: FaultProxy) {
    this.#folder = folder;
    this.#executable = executable;
    this.cluster = cluster;
    this.proxy = proxy;
  }

  get client() {
    return this.cluster.client;
  }

  /** Starts an operator. Its predecessor's lease is taken away: a killed one would hold it for a quarter of a minute. */
  async begin(): Promise<OperatorProcess> {
    // A story that failed may have left one running.
    this.kill();
    await this.#life?.exited;
    await this.client.delete(LEASES, { namespace: "vendor-operator", name: "vendor-operator" }).catch(() => {});
    const process = { executable: this.#executable, server: this.proxy.url, folder: this.#folder };
    this.#life = await startOperatorProcess(process);
    return this.#life;
  }

  kill(): void {
    this.#life?.kill();
  }

  async end(): Promise<void> {
    await this.#life?.stop();
    this.#life = undefined;
  }

  /** As if the machine of the API server had been restarted: gone for a moment, then there again with what it had acknowledged. */
  async restartServer(): Promise<void> {
    const { keys, url } = this.cluster;
    this.proxy.server = undefined;
    await this.cluster.close();
    this.cluster = await startCluster({ ...clusterIn(this.#folder), keys, port: Number(new URL(url).port) });
    this.proxy.server = this.cluster.server;
  }

  /** Whether every part works, and this one says this. */
  async says(part: string, message: RegExp): Promise<boolean> {
    const all = await allStatuses(this.client);
    const well = Object.values(all).filter(({ available }) => available).length;
    return well === PARTS.length && message.test(all[part]?.message ?? "");
  }

  async until(phase: Phase, stopWaiting: () => boolean = () => false): Promise<void> {
    const began = Date.now();
    while (!(await phase.isOver(this)) && !stopWaiting()) {
      if (Date.now() - began > patience(PATIENCE_MS))
        throw new Error(`${phase.name} never ended: ${await this.#words()}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async endState(): Promise<EndState> {
    return endState(await listEverything(this.client));
  }

  /** Waits for the state that is expected; says how it differs when it does not come. */
  async untilSame(expected: EndState, stopWaiting: () => boolean = () => false): Promise<string[]> {
    const began = Date.now();
    for (;;) {
      const different = differentFrom(expected, await this.endState());
      if (different.length === 0 || stopWaiting() || Date.now() - began > patience(PATIENCE_MS / 4)) return different;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async close(): Promise<void> {
    this.kill();
    await this.#life?.exited;
    await this.proxy.close();
    await this.cluster.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #words(): Promise<string> {
    const { items } = await this.client.list<KubeObject>(storedKind("installation"));
    const last = this.proxy.writes.slice(-5);
    return JSON.stringify({ statuses: await allStatuses(this.client), installations: items, last }, undefined, 1);
  }
}

function clusterIn(folder: string) {
  return { name: "story", kind: "generic", nodes: 2, dataDir: join(folder, "data") };
}
