import type { Names } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { DataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import type { HostEndpoint as HostEndpointResource } from "../api/resources/host-endpoint.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import type { IPAMBlock } from "../api/resources/ipam.ts";
import type { NetworkPolicy } from "../api/resources/network-policy.ts";
import type { NetworkSet } from "../api/resources/network-set.ts";
import type { Profile as ProfileResource } from "../api/resources/profile.ts";
import { profileName, profileSource } from "../api/resources/profile-names.ts";
import type { Tier } from "../api/resources/tier.ts";
import { type LocalPod, PodAddresses } from "./addresses/pod-addresses.ts";
import { ReservedAddresses } from "./addresses/reserved-addresses.ts";
import { unclaimableAddress } from "./addresses/special-addresses.ts";
import { calculatorKinds, type InputName } from "./calculator-kinds.ts";
import { InputTable, keyOf } from "./input-table.ts";
import type {
  ClusterNode,
  HostEndpoint,
  ModelDelta,
  ModelProblem,
  Net,
  Policy,
  Profile,
  Route,
  ServicePort,
  Settings,
  TableDelta,
  WorkloadEndpoint,
} from "./model.ts";
import { addressOf, toNet, toNets } from "./nets.ts";
import { orMake } from "./or-make.ts";
import { Endpoints } from "./policy/endpoints.ts";
import { IpSets } from "./policy/ip-sets.ts";
import {
  hasOwnNetwork,
  labeledHostEndpoint,
  labeledNetworkSet,
  serviceAccountOf,
  workloadOf,
} from "./policy/labeled-endpoints.ts";
import { translateKubernetesPolicy } from "./policy/translate-kubernetes-policy.ts";
import { translatePolicy } from "./policy/translate-policy.ts";
import { allowAllProfile, translateProfile } from "./policy/translate-profile.ts";
import type { Translation } from "./policy/translated-policy.ts";
import { problem } from "./policy/untranslatable.ts";
import { nodeNets } from "./routes/cluster-node.ts";
import { Nodes } from "./routes/nodes.ts";
import { blockFacts, Routes } from "./routes/routes.ts";
import { HostPorts } from "./services/host-ports.ts";
import { Backends } from "./services/service-backends.ts";
import type { Service } from "./services/service-ports.ts";
import { Services } from "./services/services.ts";
import { settingsOf, withoutEffect } from "./settings.ts";
import { TableDiff } from "./table-diff.ts";

/** What each input holds. The orchestrator's objects are read where they are used. */
interface InputObjects extends Record<InputName, object> {
  pods: KubeObject;
  namespaces: KubeObject;
  serviceAccounts: KubeObject;
  nodes: KubeObject;
  services: Service;
  kubernetesPolicies: KubeObject;
  endpointSlices: KubeObject;
  networkPolicies: NetworkPolicy;
  globalNetworkPolicies: NetworkPolicy;
  tiers: Tier;
  profiles: ProfileResource;
  networkSets: NetworkSet;
  globalNetworkSets: NetworkSet;
  hostEndpoints: HostEndpointResource;
  pools: IPPool;
  blocks: IPAMBlock;
  affinities: { spec?: Affinity };
  configurations: DataplaneConfiguration;
}

type Inputs = { readonly [Name in InputName]: InputTable<InputObjects[Name]> };

/** Written by the API server itself. Further slices of its service could be anybody's who may write in the namespace. */
const API_SERVER_SLICE = "default/kubernetes";

/** What differs between those who calculate. */
export interface CalculationOptions {
  /** Another CNI plugin gives pods their addresses: there are no pools or blocks that could contradict their status. */
  foreignAddresses?: boolean;
  /** Services may claim any address, as with Kubernetes' own kube-proxy. */
  unguardedServices?: boolean;
  /** Host ports of this node's pods are served. */
  hostPorts?: boolean;
}

/**
 * The wiring: which input touches which part of the model. Inputs are looked at in the order below, each key once, so a part always sees
 * what it depends on as it is now:
 *
 *   namespaces, accounts -> pods, network sets        profiles -> host endpoints        (labels and profiles handed on)
 *   local records, blocks, pools, nodes, API server -> which addresses are a pod's
 *   pods, network sets, host endpoints -> who is in sets; of this node: endpoints
 *   policies, tiers, profiles -> endpoints -> policies and profiles in use -> sets in use
 *   services, endpoint slices, this node's zone -> ports of services; pods of this node -> host ports
 *   blocks, affinities, pools, nodes, pods of this node -> routes
 */
export class Calculation {
  readonly #inputs: Inputs;
  readonly #node: string;
  readonly #names: Names;
  readonly #tables = {
    endpoints: new TableDiff<WorkloadEndpoint>(),
    hostEndpoints: new TableDiff<HostEndpoint>(),
    policies: new TableDiff<Policy>(),
    profiles: new TableDiff<Profile>(),
    nodes: new TableDiff<ClusterNode>(),
    routes: new TableDiff<Route>(),
    services: new TableDiff<ServicePort>(),
    problems: new TableDiff<ModelProblem>(),
    settings: new TableDiff<Settings>(),
  };
  readonly #backends = new Backends();
  readonly #sets = new IpSets((service) => this.#backends.of(service));
  readonly #endpoints: Endpoints;
  readonly #services: Services;
  readonly #hostPorts: HostPorts | undefined;
  readonly #routes: Routes;
  readonly #nodes: Nodes;
  readonly #reserved = new ReservedAddresses();
  readonly #podAddresses: PodAddresses;
  readonly #released = new Set<Net>();
  readonly #problemsOf = new Map<string, string[]>();
  readonly #policyIds = new Map<string, string>();
  /** Keys of pods and network sets by their namespace: what a namespace's labels are handed on to. */
  readonly #within = { pods: new Map<string, Set<string>>(), networkSets: new Map<string, Set<string>>() };
  #inSync = false;
  #toldInSync = false;
  #settled = false;

  constructor(
    node: string,
    names: Names,
    { foreignAddresses = false, unguardedServices = false, hostPorts = false }: CalculationOptions = {},
  ) {
    this.#node = node;
    this.#podAddresses = new PodAddresses(node, this.#reserved, foreignAddresses);
    this.#names = names;
    const kinds = [...calculatorKinds(names).keys()];
    this.#inputs = Object.fromEntries(kinds.map((name) => [name, new InputTable()])) as Inputs;
    this.#endpoints = new Endpoints(this.#sets, this.#tables);
    this.#services = new Services(node, this.#tables.services, {
      slicesOf: (service) => this.#backends.slicesOf(service),
      holder: (net) => (unguardedServices ? undefined : this.#holder(net)),
    });
    this.#hostPorts = hostPorts ? new HostPorts(this.#tables.services) : undefined;
    this.#routes = new Routes(node, this.#tables.routes);
    this.#nodes = new Nodes(node, names.namespaces.system, this.#tables.nodes, this.#routes);
    const { allowAllProfile: id } = names.hostEndpoints;
    this.#endpoints.setProfile(id, allowAllProfile(id));
  }

  /** Objects arrive as the API server has validated them: from here on each has the type of its kind. */
  set(input: InputName, key: string, object: KubeObject): void {
    (this.#inputs[input] as unknown as InputTable<KubeObject>).set(key, object);
  }

  remove(input: InputName, key: string): void {
    this.#inputs[input].remove(key);
  }

  setLocalPod(key: string, record: LocalPod | undefined): void {
    this.#podAddresses.setLocal(key, record);
    this.#inputs.pods.touch(key);
  }

  setApiServers(addresses: readonly string[]): void {
    this.#reserve("API server by configuration", toNets(addresses), "an address of the API server");
  }

  inSync(): void {
    this.#inSync = true;
  }

  takeDelta(): ModelDelta | undefined {
    this.#settle();
    // While lists come in, whose an address is may look one way and then the other; and nothing was in effect before.
    if (!this.#toldInSync) this.#released.clear();
    const { endpoints, hostEndpoints, policies, profiles, nodes, routes, services, problems, settings } = this.#tables;
    const [newSettings] = settings.takeDelta().set;
    const delta: ModelDelta = {
      inSync: this.#inSync,
      ipSets: this.#sets.takeDelta(),
      policies: policies.takeDelta(),
      profiles: profiles.takeDelta(),
      endpoints: endpoints.takeDelta(),
      hostEndpoints: hostEndpoints.takeDelta(),
      nodes: nodes.takeDelta(),
      routes: routes.takeDelta(),
      services: services.takeDelta(),
      problems: problems.takeDelta(),
      ...(this.#released.size > 0 ? { released: [...this.#released].sort() } : {}),
      ...(newSettings ? { settings: newSettings } : {}),
    };
    this.#released.clear();
    const changed = this.#inSync !== this.#toldInSync || !isEmpty(delta);
    this.#toldInSync = this.#inSync;
    return changed ? delta : undefined;
  }

  #settle(): void {
    this.#settleHandedOn();
    this.#settleAddresses();
    for (const key of this.#inputs.pods.takeDirty()) this.#settlePod(key);
    for (const name of ["networkSets", "globalNetworkSets"] as const) this.#settleNetworkSets(name);
    for (const key of this.#inputs.hostEndpoints.takeDirty()) this.#settleHostEndpoint(key);
    for (const key of this.#inputs.endpointSlices.takeDirty()) {
      const services = this.#backends.set(key, this.#inputs.endpointSlices.get(key));
      for (const service of services) {
        this.#sets.serviceChanged(service);
        this.#inputs.services.touch(service);
      }
    }
    this.#settleServices();
    this.#settlePolicies("kubernetesPolicies", translateKubernetesPolicy);
    this.#settlePolicies("networkPolicies", translatePolicy);
    this.#settlePolicies("globalNetworkPolicies", translatePolicy);
    for (const name of this.#inputs.tiers.takeDirty()) {
      this.#endpoints.setTier(name, this.#inputs.tiers.get(name));
    }
    this.#endpoints.settle();
    this.#settleRouting();
  }

  /** Namespaces, accounts and profiles: what they hand on makes others worth another look. */
  #settleHandedOn(): void {
    const { pods, networkSets, hostEndpoints, namespaces, serviceAccounts, profiles } = this.#inputs;
    this.#indexByNamespace("pods");
    this.#indexByNamespace("networkSets");
    for (const name of namespaces.takeDirty()) {
      for (const key of this.#within.pods.get(name) ?? []) pods.touch(key);
      for (const key of this.#within.networkSets.get(name) ?? []) networkSets.touch(key);
      const id = profileName({ of: "namespace", namespace: name });
      this.#endpoints.setProfile(id, namespaces.get(name) ? allowAllProfile(id) : undefined);
    }
    for (const key of serviceAccounts.takeDirty()) {
      const [namespace = "", account] = key.split("/");
      for (const pod of this.#within.pods.get(namespace) ?? []) {
        const object = pods.get(pod);
        if (object && serviceAccountOf(object) === account) pods.touch(pod);
      }
    }
    for (const name of profiles.takeDirty()) {
      if (this.#isReserved(name)) continue;
      const object = profiles.get(name);
      const { translated, problems = [] } = object ? translateProfile(object) : {};
      this.#endpoints.setProfile(name, translated);
      this.#report(`profile ${name}`, problems);
      for (const endpoint of hostEndpoints.values()) {
        if (endpoint.spec.profiles?.includes(name)) hostEndpoints.touch(endpoint.metadata.name);
      }
    }
  }

  /** Reserved names: what they mean is calculated, so that nothing waits for the controllers that store them. */
  #isReserved(profile: string): boolean {
    return profile === this.#names.hostEndpoints.allowAllProfile || profileSource(profile) !== undefined;
  }

  #indexByNamespace(name: "pods" | "networkSets"): void {
    const dirty = this.#inputs[name].takeDirty();
    for (const key of dirty) {
      const namespace = key.slice(0, key.indexOf("/"));
      const keys = orMake(this.#within[name], namespace, () => new Set());
      if (this.#inputs[name].get(key)) keys.add(key);
      else keys.delete(key);
      if (keys.size === 0) this.#within[name].delete(namespace);
      this.#inputs[name].touch(key);
    }
  }

  /** Whose an address is must be known before pods and services are looked at; routes take the same changes afterwards. */
  #settleAddresses(): void {
    const { pods, nodes, blocks, pools, endpointSlices } = this.#inputs;
    for (const name of nodes.dirtyKeys()) {
      const node = nodes.get(name);
      const nets = node ? nodeNets(node) : [];
      this.#reserve(`node ${name}`, nets, `an address of node ${name}`);
      if (name === this.#node) for (const key of this.#hostPorts?.standsAt(nets.map(addressOf)) ?? []) pods.touch(key);
      const { podCIDRs = [] } = (node?.["spec"] ?? {}) as { podCIDRs?: string[] };
      if (this.#podAddresses.setPodCidrs(name, podCIDRs)) for (const key of pods.keys()) pods.touch(key);
    }
    for (const key of endpointSlices.dirtyKeys()) {
      if (key !== API_SERVER_SLICE) continue;
      const { endpoints = [] } = (endpointSlices.get(key) ?? {}) as { endpoints?: { addresses?: string[] }[] | null };
      const addresses = (endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? []);
      this.#reserve("API server by its slice", toNets(addresses), "an address of the API server");
    }
    for (const key of blocks.dirtyKeys()) {
      for (const pod of this.#podAddresses.setBlock(key, blocks.get(key))) pods.touch(pod);
    }
    if (pools.dirtyKeys().length > 0) {
      this.#podAddresses.setPools(toNets([...pools.values()].map(({ spec }) => spec.cidr)));
      for (const key of pods.keys()) pods.touch(key);
    }
  }

  #reserve(source: string, nets: readonly Net[], holder: string): void {
    for (const net of this.#reserved.set(source, nets, holder)) {
      for (const pod of this.#podAddresses.claimants(net)) this.#inputs.pods.touch(pod);
      for (const service of this.#services.claimants(net)) this.#inputs.services.touch(service);
    }
  }

  /** Whose an address is that no Service may claim; undefined: it may be claimed. */
  #holder(net: Net): string | undefined {
    const pod = this.#podAddresses.holder(net);
    return unclaimableAddress(addressOf(net)) ?? this.#reserved.holder(net) ?? (pod && `the address of pod ${pod}`);
  }

  #settlePod(key: string): void {
    const pod = this.#inputs.pods.get(key);
    this.#nodes.setPod(key, pod);
    const { namespace: within = "" } = pod?.metadata ?? {};
    const { nets, mac, refused, changed } = this.#podAddresses.settle(
      key,
      pod,
      pod !== undefined && hasOwnNetwork(pod),
    );
    for (const net of changed) {
      if (!nets.includes(net)) this.#released.add(net);
      // A Service that claims it may have to let it go, or may have it now.
      for (const service of this.#services.claimants(net)) this.#inputs.services.touch(service);
    }
    const namespace = this.#inputs.namespaces.get(within);
    const account = pod && this.#inputs.serviceAccounts.get(`${within}/${serviceAccountOf(pod)}`);
    const workload = pod && workloadOf(pod, { namespace, account, nets, mac });
    const id = `pod ${key}`;
    const claims = refused.map(({ net, why }) => `${addressOf(net)} is ${why}`).join("; ");
    const message = `the pod claims addresses that are not its own: ${claims}`;
    if (workload) this.#sets.setEndpoint(workload);
    else this.#sets.removeEndpoint(id);
    const local = workload?.node === this.#node ? workload : undefined;
    this.#report(id, [
      ...(pod && claims ? [problem("Pod", pod.metadata, "POD_ADDRESS_REFUSED", message)] : []),
      ...(this.#hostPorts?.set(key, local && pod, nets) ?? []),
    ]);
    if (local) this.#endpoints.set({ is: "workload", thing: local });
    else this.#endpoints.remove(id);
    const interfaceName = local?.interfaceName ?? "";
    this.#routes.problems(id, local ? local.nets.map((net) => ({ is: "workload", net, interfaceName })) : []);
  }

  #settleNetworkSets(name: "networkSets" | "globalNetworkSets"): void {
    for (const key of this.#inputs[name].takeDirty()) {
      const set = this.#inputs[name].get(key);
      if (set)
        this.#sets.setEndpoint(labeledNetworkSet(set, this.#inputs.namespaces.get(set.metadata.namespace ?? "")));
      else this.#sets.removeEndpoint(`${name === "networkSets" ? "ns" : "gns"} ${key}`);
    }
  }

  #settleHostEndpoint(key: string): void {
    const resource = this.#inputs.hostEndpoints.get(key);
    const id = `hep ${key}`;
    const thing = resource && labeledHostEndpoint(resource, (name) => this.#labelsOfProfile(name));
    if (thing) this.#sets.setEndpoint(thing);
    else this.#sets.removeEndpoint(id);
    if (thing && resource.spec.node === this.#node) this.#endpoints.set({ is: "host", thing, resource });
    else this.#endpoints.remove(id);
  }

  #labelsOfProfile(name: string): Readonly<Record<string, string>> | undefined {
    if (this.#isReserved(name)) return undefined;
    return this.#inputs.profiles.get(name)?.spec?.labelsToApply;
  }

  #settlePolicies<Name extends "kubernetesPolicies" | "networkPolicies" | "globalNetworkPolicies">(
    name: Name,
    translate: (object: InputObjects[Name]) => Translation,
  ): void {
    for (const key of this.#inputs[name].takeDirty()) {
      const object = this.#inputs[name].get(key);
      const source = `${name} ${key}`;
      const { translated, problems = [] } = object ? translate(object) : ({} as Partial<Translation>);
      const before = this.#policyIds.get(source);
      if (before !== undefined && before !== translated?.policy.id) this.#endpoints.setPolicy(before, undefined);
      if (translated) {
        this.#policyIds.set(source, translated.policy.id);
        this.#endpoints.setPolicy(translated.policy.id, translated);
      } else this.#policyIds.delete(source);
      this.#report(source, problems);
    }
  }

  #settleServices(): void {
    const { services, nodes } = this.#inputs;
    if (this.#services.standsAt(nodes.get(this.#node))) {
      for (const { metadata } of services.values()) services.touch(keyOf(metadata));
    }
    for (const key of services.takeDirty()) {
      this.#report(`service ${key}`, this.#services.set(key, services.get(key)));
    }
  }

  #settleRouting(): void {
    const { nodes, blocks, affinities, pools, configurations } = this.#inputs;
    for (const key of blocks.takeDirty()) {
      const block = blocks.get(key);
      const facts = block ? blockFacts(block) : [];
      this.#routes.problems(`block ${key}`, facts);
      this.#nodes.setBlock(key, facts);
    }
    for (const key of affinities.takeDirty()) this.#settleAffinity(key);
    for (const name of nodes.takeDirty()) this.#nodes.set(name, nodes.get(name));
    const nodesChanged = this.#nodes.settle();
    const changedPools = pools.takeDirty();
    for (const key of changedPools) this.#settlePool(key);
    const all = [...pools.values()];
    if (nodesChanged || changedPools.length > 0) this.#routes.know(all, this.#nodes);
    this.#routes.settle();
    if (configurations.takeDirty().length + changedPools.length > 0 || !this.#settled) {
      const [common, own] = [this.#names.singleton, `node.${this.#node}`].map((name) => {
        const found = configurations.get(name);
        this.#report(`configuration ${name}`, found ? withoutEffect(found) : []);
        return found?.spec;
      });
      this.#tables.settings.set("", settingsOf(common, own, all));
      this.#settled = true;
    }
  }

  #settleAffinity(key: string): void {
    const { spec } = this.#inputs.affinities.get(key) ?? {};
    const net = spec?.state === "confirmed" && !spec.deleted && spec.type !== "virtual" ? toNet(spec.cidr) : undefined;
    // `claim` comes after `block` in the alphabet, so that the block is believed where the two differ.
    this.#routes.problems(`claim ${key}`, spec && net !== undefined ? [{ is: "pods", net, node: spec.node }] : []);
  }

  #settlePool(key: string): void {
    const pool = this.#inputs.pools.get(key);
    const net = pool && toNet(pool.spec.cidr);
    this.#routes.problems(`pool ${key}`, net === undefined ? [] : [{ is: "pool", net }]);
    const ipip = pool?.spec.ipipMode !== undefined && pool.spec.ipipMode !== "Never";
    const message = "IPIP is not supported: packets to this pool's pods travel without it";
    this.#report(`pool ${key}`, pool && ipip ? [problem(pool.kind, pool.metadata, "IPIP_UNSUPPORTED", message)] : []);
  }

  /** What is wrong with one object now, in place of what was. */
  #report(source: string, problems: readonly ModelProblem[]): void {
    for (const id of this.#problemsOf.get(source) ?? []) this.#tables.problems.set(id, undefined);
    for (const found of problems) this.#tables.problems.set(found.id, found);
    if (problems.length > 0)
      this.#problemsOf.set(
        source,
        problems.map(({ id }) => id),
      );
    else this.#problemsOf.delete(source);
  }
}

interface Affinity {
  state: string;
  node: string;
  cidr: string;
  type?: string;
  deleted?: boolean;
}

function isEmpty({ ipSets, settings, released, inSync: _, ...tables }: ModelDelta): boolean {
  const untouched = (table: TableDelta<unknown>) => table.set.length === 0 && table.remove.length === 0;
  return (
    settings === undefined &&
    released === undefined &&
    untouched(ipSets) &&
    ipSets.change.length === 0 &&
    Object.values(tables).every(untouched)
  );
}
