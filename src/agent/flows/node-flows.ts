import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Dataplane } from "../../api/dataplane.ts";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { FLOW_LOGS_PORT } from "../../api/protocol/flow-wire.ts";
import { addressOf } from "../../calc/nets.ts";
import type { StagedModel } from "../../calc/staged-calculator.ts";
import type { ProgramContext } from "../../cluster/program.ts";
import { programTls } from "../../cluster/program-tls.ts";
import type { FlowAccounting } from "../../dataplane/flow-sums.ts";
import type { NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { ModelLoop } from "../model-loop.ts";
import type { WatchedObjects } from "../watch-objects.ts";
import { collectFlows, type FlowCollector } from "./flow-collector.ts";
import type { FlowTarget } from "./flow-delivery.ts";
import { flowEnds } from "./flow-ends.ts";
import { pendingPolicy } from "./pending-policy.ts";

const BOOT_ID = "/proc/sys/kernel/random/boot_id";

export interface NodeFlowsParts {
  env: ProgramContext["env"];
  node: string;
  runDirectory: string;
  objects: WatchedObjects;
  loop: ModelLoop;
  netlink: NetlinkPort;
  /** Undefined: nothing is staged. */
  staged(): StagedModel | undefined;
  /** Of the data plane that acts. */
  accounting(): { dataplane: Dataplane; flows: FlowAccounting } | undefined;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

/** Flow logs are asked for by the Service that takes them: it is there while the operator runs vendor-flow-logs. */
export function nodeFlows(parts: NodeFlowsParts): FlowCollector & { close(): void } {
  const { env, node, objects, loop, netlink, clock, log, signal } = parts;
  const ends = flowEnds(objects, () => clock.now());
  const pending = pendingPolicy();
  const collector = collectFlows({
    ...{ node, clock, log, signal, accounting: parts.accounting },
    known: objects.synced,
    boot: readFileSync(BOOT_ID, "utf8").trim(),
    directory: join(parts.runDirectory, "flows"),
    target: () => targetOf(env, objects.services?.get(SERVICE)),
    naming: async (sums) => ({
      ...{ ends, model: loop.model, isHere: addressesHere(loop.model, node) },
      pendingOf: await pending.of(sums, { enforced: loop.model, staged: parts.staged(), netlink }),
    }),
  });
  return { ...collector, close: () => ends.close() };
}

const SERVICE = `${vendorNames.namespaces.system}/${vendorNames.workloads.flowLogs}`;

function targetOf(env: ProgramContext["env"], service: KubeObject | undefined): FlowTarget | undefined {
  const { clusterIP } = (service?.["spec"] ?? {}) as { clusterIP?: string };
  if (!clusterIP || clusterIP === "None") return undefined;
  // Read each time: certificates are renewed.
  const own = programTls(env);
  if (!own?.ca) return undefined;
  const host = clusterIP.includes(":") ? `[${clusterIP}]` : clusterIP;
  return {
    url: `https://${host}:${FLOW_LOGS_PORT}`,
    name: `${vendorNames.workloads.flowLogs}.${vendorNames.namespaces.system}.svc`,
    tls: { certificate: own.certificate, key: own.key, ca: own.ca },
  };
}

/** Of the node's pods, and its own. */
function addressesHere({ endpoints, nodes }: ModelLoop["model"], node: string): (address: string) => boolean {
  const here = new Set<string>();
  for (const endpoint of endpoints.values()) for (const net of endpoint.addresses) here.add(addressOf(net));
  for (const net of nodes.get(node)?.addresses ?? []) here.add(addressOf(net));
  return (address) => here.has(address);
}
