import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import type { KubeObject } from "../src/api/object.ts";
import { LEASES } from "../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../src/local/cluster.ts";
import {
  applyAll,
  applyOperator,
  customResources,
  documents,
  endpointMap,
} from "../test/support/operator-manifests.ts";
import { allStatuses } from "../test/support/operator-status.ts";
import type { Row } from "./run.ts";

const NODES = 1_000;
const ASKED_FOR = ["network", "ippools", "apiserver"];

/** The operator in a process of its own, on an embedded cluster of a thousand paper nodes. */
export async function run(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "bench-operator-"));
  const cluster = await startCluster({ name: "story", kind: "generic", nodes: NODES });
  try {
    const { client } = cluster;
    await applyOperator(client, 0);
    await applyAll(client, documents(endpointMap("generic", cluster) ?? ""));
    const first = await Operator.start(cluster, folder);
    await first.until(async () => (await first.metrics()).get("vendor_operator_leader") === 1);
    const idle = first.memory().now;
    const began = performance.now();
    await applyAll(client, documents(customResources("linuxDataplane: BPF")));
    await first.until(() => isInstalled(cluster));
    const seconds = (performance.now() - began) / 1000;
    const writes = await first.writes();
    const memory = first.memory();
    const processor = first.processorSeconds();
    await first.stop();
    // A new life reads everything, looks at every part, and has nothing to do.
    await client.delete(LEASES, { namespace: "vendor-operator", name: "vendor-operator" }).catch(() => {});
    const second = await Operator.start(cluster, folder);
    const restarted = performance.now();
    await second.until(async () => (await second.parts()) === PARTS);
    const looked = (performance.now() - restarted) / 1000;
    const again = await second.writes();
    await second.stop();
    return [
      { name: `Installation created to Available, ${NODES} nodes`, value: seconds, unit: "s" },
      { name: "writes until Available", value: writes, unit: "" },
      { name: "processor time of the operator until Available", value: processor, unit: "s" },
      { name: "memory of the operator, nothing installed", value: idle, unit: "MB" },
      { name: "memory of the operator, Available", value: memory.now, unit: "MB" },
      { name: "memory of the operator, at its highest", value: memory.peak, unit: "MB" },
      { name: "start to every part looked at, nothing to do", value: looked, unit: "s" },
      { name: "writes of that", value: again, unit: "" },
    ];
  } finally {
    await cluster.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Every part has a status of its own. */
const PARTS = 6;

async function isInstalled({ client }: LocalCluster): Promise<boolean> {
  const statuses = await allStatuses(client);
  return ASKED_FOR.every((part) => statuses[part]?.available);
}

/** `vendor operator` as a process, by the rights of its service account. */
class Operator {
  readonly #child: ChildProcess;
  readonly #port: number;

  static async start(cluster: LocalCluster, folder: string): Promise<Operator> {
    const kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, await accountKubeconfig(cluster));
    const port = await freePort();
    const child = spawn(process.execPath, ["bin/vendor", "operator"], {
      stdio: ["ignore", "ignore", "inherit"],
      env: {
        PATH: process.env["PATH"],
        KUBECONFIG: kubeconfig,
        NAMESPACE: "vendor-operator",
        HEALTH_PORT: String(port),
        LOG_LEVEL: "warn",
      },
    });
    return new Operator(child, port);
  }

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
  }

  /** Its own counters, summed over their labels. */
  async metrics(): Promise<Map<string, number>> {
    const sums = new Map<string, number>();
    for (const [, name = "", value] of (await this.#text()).matchAll(/^(\w+)(?:\{[^}]*\})? ([\d.]+)$/gm)) {
      sums.set(name, (sums.get(name) ?? 0) + Number(value));
    }
    return sums;
  }

  async writes(): Promise<number> {
    return (await this.metrics()).get("vendor_operator_writes_total") ?? 0;
  }

  /** How many parts it has looked at. */
  async parts(): Promise<number> {
    const looks = (await this.#text()).matchAll(/^vendor_operator_reconciles_total\{[^}]*part="([^"]+)"/gm);
    return new Set([...looks].map(([, part]) => part)).size;
  }

  async #text(): Promise<string> {
    try {
      return await (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text();
    } catch {
      // It does not listen yet.
      return "";
    }
  }

  async until(is: () => Promise<boolean>): Promise<void> {
    while (!(await is())) {
      if (this.#child.exitCode !== null) throw new Error(`the operator ended with ${this.#child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Resident memory in MB, now and at its highest. */
  memory(): { now: number; peak: number } {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    const megabytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)![1]) / 1024;
    return { now: megabytes("VmRSS"), peak: megabytes("VmHWM") };
  }

  processorSeconds(): number {
    const [user, system] = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8")
      .split(") ")[1]!
      .split(" ")
      .slice(11, 13);
    const TICKS = 100;
    return (Number(user) + Number(system)) / TICKS;
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await exited;
  }
}

async function accountKubeconfig({ client, url, keys }: LocalCluster): Promise<string> {
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 3600 } };
  const answer = await client.raw({
    method: "POST",
    path: "/api/v1/namespaces/vendor-operator/serviceaccounts/vendor-operator/token",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  const { status } = JSON.parse(await answer.text()) as KubeObject & { status: { token: string } };
  const authority = Buffer.from(keys.authority.certificate).toString("base64");
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "bench", cluster: { server: url, "certificate-authority-data": authority } }],
    users: [{ name: "operator", user: { token: status.token } }],
    contexts: [{ name: "bench", context: { cluster: "bench", user: "operator" } }],
    "current-context": "bench",
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
