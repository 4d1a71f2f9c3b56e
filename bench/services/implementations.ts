import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import type { ModelDelta, ServicePort } from "../../src/calc/model.ts";
import { createEbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import { createNatTable } from "../../src/dataplane/nft/nat-table.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import {
  iptablesWriter,
  nftablesWriter,
  type RunOnNode,
  type ServiceRulesWriter,
} from "../../src/local/runtime/netns/kube-proxy/service-writers.ts";
import { NODE } from "../pods/cluster.ts";

/** How services are served on a node; `direct` has none, and the pod is asked by its own address. */
export type Implementation = "direct" | "ebpf" | "nft" | "iptables";

/** Services of one node, in its kernel; none at first. */
export interface Served {
  write(services: readonly ServicePort[]): Promise<void>;
  /** Seconds of processor time of this process and those it started, for all so far. */
  cpu(): number;
  close(): Promise<void>;
}

const kernel = realKernel();
const PROXY_NODE = { clusterCidrs: ["10.9.0.0/16"], addresses: [NODE.address] };
const OVERLAY = "vxlan.bench";
/** In one transaction the kernel takes a time that grows with the square of what is in it: the proxy is measured at its best. */
const NFT_AT_ONCE = 1_000;

/** The whole plane, as the agent has it: filters too, which the proxies do not have here. */
export async function serveByEbpf(netns: Netns, delta: ModelDelta): Promise<Served> {
  const directory = `/sys/fs/bpf/${netns.name}`;
  kernel.mounts.ensure("bpf", "/sys/fs/bpf");
  const plane = await createEbpfDataplane({ kernel, pinDirectory: directory, overlay: OVERLAY, netns });
  const nat = createNatTable({ kernel, table: "bench", netns });
  const apply = async (change: ModelDelta) => {
    const bad = (await plane.apply(change)).objects.find(({ failed }) => failed);
    if (bad) throw bad.failed;
  };
  const close = async () => {
    await plane.close();
    nat.close();
    // What is attached goes with the namespace.
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await apply(delta);
    await nat.apply(delta);
  } catch (error) {
    await close();
    throw error;
  }
  const nothing = { set: [], remove: [] };
  const rest = {
    ...{ inSync: true, ipSets: { ...nothing, change: [] }, policies: nothing, profiles: nothing, endpoints: nothing },
    ...{ hostEndpoints: nothing, nodes: nothing, routes: nothing, problems: nothing },
  };
  const write = (services: readonly ServicePort[]) => apply({ ...rest, services: { set: [...services], remove: [] } });
  return { write, cpu: ownCpu, close };
}

export async function serveByProxy(way: "nft" | "iptables", netns: Netns): Promise<Served> {
  let children = 0;
  const run: RunOnNode = async (command, input) => {
    const { cpu, ...ran } = await runCounted(netns, command, input);
    children += cpu;
    return ran;
  };
  const writer: ServiceRulesWriter =
    way === "nft" ? nftablesWriter(kernel.nft(netns), PROXY_NODE) : iptablesWriter(run, PROXY_NODE, "iptables-legacy");
  const all = new Map<string, ServicePort>();
  await writer.write(all);
  return {
    write: async (services) => {
      const atOnce = way === "nft" ? NFT_AT_ONCE : services.length;
      for (let from = 0; from < services.length; from += atOnce) {
        for (const service of services.slice(from, from + atOnce)) all.set(service.id, service);
        await writer.write(all);
      }
    },
    cpu: () => ownCpu() + children,
    close: async () => writer.close(),
  };
}

function ownCpu(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** The shell counts what the command took, in its last line of errors. */
async function runCounted(netns: Netns, command: readonly string[], input = "") {
  const script = 'TIMEFORMAT="%U %S"; time "$@"';
  const child = spawn("nsenter", [`--net=/run/netns/${netns.name}`, "bash", "-c", script, "bash", ...command]);
  const text = { out: "", err: "" };
  child.stdout.on("data", (part: Buffer) => (text.out += part));
  child.stderr.on("data", (part: Buffer) => (text.err += part));
  child.stdin.on("error", () => undefined).end(input);
  const [code] = (await once(child, "close")) as [number | null];
  const [, user = 0, system = 0] = /([\d.]+) ([\d.]+)\s*$/.exec(text.err)?.map(Number) ?? [];
  return { code: code ?? -1, ...text, cpu: user + system };
}
