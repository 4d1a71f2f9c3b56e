import type { DataplaneModel, ServiceBackend, ServicePort } from "../calc/model.ts";
import type { LimitedWorkload, ObjectOutcome, Table } from "../dataplane/contract.ts";
import { isFull, type MapFill } from "../dataplane/ebpf/map-fill.ts";
import type { AddressConflict } from "../ipam/ipam.ts";
import type { SwitchoverReport } from "./dataplane-switch.ts";
import { errors } from "./errors.ts";
import type { FlowCollectorState } from "./flows/flow-collector.ts";
import { lossError, type OverlayLoss } from "./overlay/overlay-loss.ts";
import type { PairState } from "./overlay/overlay-watch.ts";
import type { PodRecord } from "./pods/pod-records.ts";
import type { RefusedPod } from "./refused-pods.ts";

export function podsTable(records: readonly PodRecord[]): Table {
  return {
    columns: ["pod", "container", "interface", "addresses", "namespace", "state"],
    rows: ordered(
      records.map(({ namespace, pod, containerId, interfaceName, addresses, netns, state }) => [
        `${namespace}/${pod}`,
        containerId.slice(0, 13),
        interfaceName,
        addresses.join(" "),
        netns,
        state,
      ]),
    ),
  };
}

export function settingsTable({ settings }: DataplaneModel): Table {
  const { configuration, sources, ...ours } = settings;
  return {
    columns: ["setting", "value", "source"],
    rows: ordered([
      ...Object.entries(ours).map(([name, value]) => [name, text(value), "effective"]),
      ...Object.entries(configuration).map(([name, value]) => [
        `configuration.${name}`,
        text(value),
        sources[name] ?? "",
      ]),
    ]),
  };
}

/** Who answers for a service, asked on this node; `*` are backends of this node. */
export function servicesTable({ services }: DataplaneModel): Table {
  return {
    columns: ["service", "addresses", "node port", "rules", "backends", "local backends"],
    rows: ordered(
      [...services.values()].map((service) => [
        service.id,
        addressesOf(service).join(" "),
        String(service.nodePort ?? "-"),
        rulesOf(service).join(", ") || "-",
        backendsText(service.clusterBackends),
        backendsText(service.localBackends),
      ]),
    ),
  };
}

function addressesOf({ clusterAddress, externalAddresses, loadBalancerAddresses, port }: ServicePort): string[] {
  return [clusterAddress ?? [], externalAddresses, loadBalancerAddresses].flat().map((address) => at(address, port));
}

function rulesOf(service: ServicePort): string[] {
  return [
    service.internalLocal ? "inside: local" : [],
    service.externalLocal ? "outside: local" : [],
    service.affinitySeconds > 0 ? `affinity ${service.affinitySeconds}s` : [],
    service.sourceRanges ? `balancer only for ${service.sourceRanges.join(" ") || "none"}` : [],
    service.healthCheckNodePort ? `health at ${service.healthCheckNodePort}: ${service.healthCheckBackends}` : [],
    service.anyBackends ? [] : "refused: no backends",
  ].flat();
}

function backendsText(backends: readonly ServiceBackend[]): string {
  return backends.map(({ address, port, local }) => `${at(address, port)}${local ? "*" : ""}`).join(" ") || "-";
}

function at(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

export interface NodeProblems {
  model: DataplaneModel;
  failed: readonly ObjectOutcome[];
  fill: readonly MapFill[];
  limited: readonly LimitedWorkload[];
  conflicts: readonly AddressConflict[];
  losses: readonly OverlayLoss[];
  refused: readonly RefusedPod[];
  /** Of the agent itself: what it cannot do on this node. */
  own: readonly { code: string; message: string; object?: string }[];
}

/**
 * Objects that are not in effect: those that cannot be understood, and those the kernel would not take; maps that are full; pods that have
 * their share of a connection table; addresses of two pods; nodes that the overlay loses packets to or from; pods that cannot be connected; and
 * what the agent itself fails to do.
 */
export function problemsTable({ model, failed, fill, limited, conflicts, losses, refused, own }: NodeProblems): Table {
  return {
    columns: ["object", "code", "problem"],
    rows: ordered([
      ...[...model.problems.values()].map(({ kind, object, code, message }) => [
        `${kind} ${object.namespace ? `${object.namespace}/` : ""}${object.name}`,
        code,
        message,
      ]),
      ...failed.map(({ kind, id, failed: why }) => [`${kind} ${id}`, why?.code ?? "", why?.message ?? ""]),
      ...fill.filter(isFull).map(({ map, entries, max }) => {
        const { code, message } = errors.AGENT_MAP_FULL(map, entries, max);
        return [`map ${map}`, code, message];
      }),
      ...limited.map(({ id, table, entries, limit }) => {
        const { code, message } = errors.WORKLOAD_CONNTRACK_LIMIT(id, table, entries, limit);
        return [`pod ${id}`, code, message];
      }),
      ...conflicts.map(({ address, pod, allocatedTo }) => {
        const { code, message } = errors.IPAM_ADDRESS_CONFLICT(address, pod, allocatedTo);
        return [`pod ${pod}`, code, message];
      }),
      ...losses.map((loss) => {
        const { code, message } = lossError(loss);
        return [`node ${loss.peer.node}`, code, message];
      }),
      ...refused.map(({ pod, code, message }) => [`pod ${pod}`, code, message]),
      ...own.map(({ code, message, object = "agent" }) => [object, code, message]),
    ]),
  };
}

/** How sending flows to vendor-flow-logs goes. */
export function flowLogsTable(state: FlowCollectorState): Table {
  const { wanted, connected, failure, waiting, sent, rows, share, shed } = state;
  return {
    columns: ["flow logs", "value"],
    rows: [
      ["wanted", wanted ? "yes" : "no"],
      ["connected", connected ? "yes" : "no"],
      ["batches sent", String(sent)],
      ["rows sent", String(rows)],
      ["intervals waiting", String(waiting)],
      ["merged sums", String(shed.merged)],
      ["packets in no flow", String(shed.unattributed)],
      ["share of a processor", `${(share * 100).toFixed(2)} %`],
      ["failure", failure ?? "-"],
    ],
  };
}

/** Which nodes were reached through the overlay, there and back; without a ready agent there, none can answer. */
export function overlayTable(pairs: readonly PairState[]): Table {
  return {
    columns: ["node", "address", "state", "agent", "last answer"],
    rows: pairs.map(({ node, address, state, answers, answeredAt }) => [
      node,
      address,
      state,
      answers ? "ready" : "not ready",
      answeredAt === undefined ? "-" : new Date(answeredAt).toISOString(),
    ]),
  };
}

/** Which data plane is on its way to be which, and what that waits for. */
export function switchoverTable({ wanted, mode, next, heldBack }: SwitchoverReport): Table {
  return {
    columns: ["what", "is"],
    rows: [
      ["wanted", wanted],
      ["programs", mode ?? "none"],
      ["next", next],
      ["held back", heldBack ?? "-"],
    ],
  };
}

function ordered(rows: string[][]): string[][] {
  return rows.sort((a, b) => (a.join("\0") < b.join("\0") ? -1 : 1));
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
