import type { DataplaneModel } from "../../../calc/model.ts";
import { type HookPolicy, hostEndpointOf, hostHook, workloadHook } from "../../../calc/policy/hook-policy.ts";
import { INTERFACE_KIND } from "../../../gen/bpf/layout.gen.ts";
import type { InterfaceAddress, Link } from "../../../kernel/netlink/netlink-port.ts";
import type { ObjectOutcome } from "../../contract.ts";
import type { ListOptions } from "../policy/policy-items.ts";

/** An interface our programs should be at, with what it runs. */
export interface DesiredInterface {
  name: string;
  place: "workload" | "host";
  kind: number;
  mac: string | null;
  /** For what comes into the node by it, and what goes out; null: nothing to run. */
  arrive: HookPolicy | null;
  leave: HookPolicy | null;
  /** The objects to report on. */
  object: Pick<ObjectOutcome, "kind" | "id"> | undefined;
}

/** Interfaces of the node that lead to other machines, unless the configuration names them. */
const UPLINKS = /^(?:(?:en|wl|ww|sl|ib)[a-z0-9]*|eth\d+|bond\d+|team\d+)$/;

export function desiredInterfaces(
  model: DataplaneModel,
  node: { links: readonly Link[]; addresses: readonly InterfaceAddress[]; overlay: string },
): DesiredInterface[] {
  return [...workloads(model), ...hosts(model, node)];
}

function workloads(model: DataplaneModel): DesiredInterface[] {
  return [...model.endpoints.values()].map((endpoint) => ({
    name: endpoint.interfaceName,
    place: "workload",
    kind: INTERFACE_KIND.INTERFACE_WORKLOAD,
    mac: endpoint.mac,
    arrive: workloadHook(model, endpoint, "egress"),
    leave: workloadHook(model, endpoint, "ingress"),
    object: { kind: "endpoint", id: endpoint.id },
  }));
}

function hosts(
  model: DataplaneModel,
  { links, addresses, overlay }: { links: readonly Link[]; addresses: readonly InterfaceAddress[]; overlay: string },
): DesiredInterface[] {
  const pattern = model.settings.configuration?.bpfDataIfacePattern;
  const isUplink = pattern ? new RegExp(pattern) : UPLINKS;
  const pods = new Set([...model.endpoints.values()].map(({ interfaceName }) => interfaceName));
  const own = links.filter(
    ({ name, master }) => name === overlay || (isUplink.test(name) && !pods.has(name) && !master),
  );
  return own.map((link) => {
    const texts = addresses.filter(({ device }) => device === link.index).map(({ address }) => address);
    const endpoint = hostEndpointOf(model, { name: link.name, addresses: texts });
    return {
      name: link.name,
      place: "host",
      kind: link.name === overlay ? INTERFACE_KIND.INTERFACE_OVERLAY : INTERFACE_KIND.INTERFACE_HOST,
      mac: null,
      arrive: endpoint ? hostHook(endpoint, "ingress") : null,
      leave: endpoint ? hostHook(endpoint, "egress") : null,
      object: endpoint && { kind: "hostEndpoint", id: endpoint.id },
    };
  });
}

/** Two interfaces with the same key run the same program. Policies are named with how often they changed, so the key need not hold their rules. */
export function policyKey(hook: HookPolicy, options: ListOptions, versionOf: (id: string) => number): string {
  const named = (ids: readonly string[]) => ids.map((id) => [id, versionOf(id)]);
  const { host, workload } = hook;
  return JSON.stringify([
    host && [host.direction, host.preDNAT, host.forward, host.normal, named(host.profiles), options.failsafe],
    workload && [workload.direction, workload.tiers, named(workload.profiles), options.endpointToHost],
    named([
      ...new Set(
        [
          ...(host?.preDNAT ?? []),
          ...(host?.forward ?? []),
          ...(host?.normal ?? []),
          ...(workload?.tiers ?? []),
        ].flatMap(({ policies }) => policies),
      ),
    ]),
  ]);
}
