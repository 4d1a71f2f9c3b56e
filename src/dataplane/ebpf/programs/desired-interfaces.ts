import { isOurInterface, isPodInterface } from "../../../api/protocol/pod-network.ts";
import type { DataplaneModel } from "../../../calc/model.ts";
import { type HookPolicy, hostEndpointOf, hostHook, workloadHook } from "../../../calc/policy/hook-policy.ts";
import { INTERFACE_KIND } from "../../../gen/bpf/layout.gen.ts";
import type { ObjectOutcome } from "../../contract.ts";
import { type NodeLinks, uplinks, withoutEthernet } from "../../net/uplinks.ts";
import { errors } from "../errors.ts";
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
  objects: readonly Pick<ObjectOutcome, "kind" | "id">[];
}

export function desiredInterfaces(model: DataplaneModel, node: NodeLinks & { overlay: string }): DesiredInterface[] {
  return [...workloads(model), ...unknownPods(model, node), ...hosts(model, node)];
}

/** Interfaces with an address of the node that programs cannot be at: what is sent to that address would pass them. */
export function unservedInterfaces(model: DataplaneModel, node: NodeLinks): ObjectOutcome[] {
  const { addressV4, addressV6 } = [...model.nodes.values()].find(({ local }) => local) ?? {};
  return withoutEthernet(node, [addressV4 ?? [], addressV6 ?? []].flat()).map(({ link: { name }, address }) => ({
    ...interfaceObject(name),
    failed: errors.EBPF_INTERFACE_NOT_ETHERNET(name, address),
  }));
}

function workloads(model: DataplaneModel): DesiredInterface[] {
  return [...model.endpoints.values()].map((endpoint) => ({
    name: endpoint.interfaceName,
    place: "workload",
    kind: INTERFACE_KIND.INTERFACE_WORKLOAD,
    mac: endpoint.mac,
    arrive: workloadHook(model, endpoint, "egress"),
    leave: workloadHook(model, endpoint, "ingress"),
    objects: [{ kind: "endpoint", id: endpoint.id }],
  }));
}

/**
 * Made by another CNI plugin, and whose they are is not known yet: closed until then, since their plugin does not wait for us. Ours are up only
 * once their policy is in effect.
 */
function unknownPods({ endpoints, settings }: DataplaneModel, { links }: NodeLinks): DesiredInterface[] {
  const known = new Set([...endpoints.values()].map(({ interfaceName }) => interfaceName));
  return links
    .filter(({ name }) => isPodInterface(name, settings.podInterfacePrefixes) && !isOurInterface(name))
    .filter(({ name, mac }) => !known.has(name) && mac !== undefined)
    .map(({ name }) => ({
      ...{ name, place: "workload", kind: INTERFACE_KIND.INTERFACE_WORKLOAD },
      ...{ mac: null, arrive: null, leave: null, objects: [interfaceObject(name)] },
    }));
}

function hosts(model: DataplaneModel, node: NodeLinks & { overlay: string }): DesiredInterface[] {
  const { links, addresses, overlay } = node;
  const { configuration, podInterfacePrefixes } = model.settings;
  const own = [
    ...links.filter(({ name }) => name === overlay),
    ...uplinks(node, configuration?.bpfDataIfacePattern).filter(
      ({ name }) => name !== overlay && !isPodInterface(name, podInterfacePrefixes),
    ),
  ];
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
      objects: [interfaceObject(link.name), ...(endpoint ? [{ kind: "hostEndpoint" as const, id: endpoint.id }] : [])],
    };
  });
}

function interfaceObject(name: string): Pick<ObjectOutcome, "kind" | "id"> {
  return { kind: "interface", id: name };
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
