import type { Names } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import { podInterfaceName } from "../api/protocol/pod-network.ts";
import type { BGPConfiguration } from "../api/resources/bgp-configuration.ts";
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
import { PodInterfaces } from "./addresses/pod-interfaces.ts";
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
  labeledAccount,
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
import { effectiveConfiguration, podInterfacePrefixes, settingsOf, withoutEffect } from "./settings.ts";
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
  bgpConfigurations: BGPConfiguration;
}

type Inputs = { readonly [Name in InputName]: InputTable<InputObjects[Name]> };

/** Written by the API server itself. Further slices of its service could be anybody's who may write in the namespace. */
const API_SERVER_SLICE = "default/kubernetes";

/** What differs between those who calculate. */
export interface CalculationOptions {
  /**
   * Another CNI plugin connects pods: there are no pools or blocks that could contradict their status, and their interfaces are known by
   * `setPodInterfaces`.
   */
  foreignAddresses?: boolean;
  /** Routes to other nodes' pods are ours to write; otherwise the network, or an overlay, leads to them. */
  routesToNodes?: boolean;
  /** BGP leads to nodes of other subnets, where a pool has no encapsulation. */
  bgp?: boolean;
  /** Fields of the DataplaneConfiguration that this node's agent has from its environment: they win. */
  configuration?: DataplaneConfiguration["spec"];
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
  /** Only where another CNI plugin connects pods: ours names interfaces after them. */
  readonly #podInterfaces: PodInterfaces | undefined;
  readonly #configuration: DataplaneConfiguration["spec"] | undefined;
  readonly #released = new Set<Net>();
  readonly #problemsOf = new Map<string, string[]>();
  readonly #policyIds = new Map<string, string>();
  /** Keys of what a namespace's labels are handed on to, by the namespace. */
  readonly #within = {
    pods: new Map<string, Set<string>>(),
    networkSets: new Map<string, Set<string>>(),
    serviceAccounts: new Map<string, Set<string>>(),
  };
  #inSync = false;
  #toldInSync = false;
  #settled = false;

  constructor(
    node: string,
    names: Names,
    {
      foreignAddresses = false,
      routesToNodes = true,
      bgp = false,
      configuration,
      unguardedServices = false,
      hostPorts = false,
    }: CalculationOptions = {},
  ) {
    this.#node = node;
    this.#configuration = configuration;
    this.#podAddresses = new PodAddresses(node, this.#reserved, foreignAddresses);
    this.#podInterfaces = foreignAddresses ? new PodInterfaces() : undefined;
    this.#names = names;
    const kinds = [...calculatorKinds(names).keys()];
    this.#inputs = Object.fromEntries(kinds.map((name) => [name, new InputTable()])) as Inputs;
    this.#endpoints = new Endpoints(this.#sets, this.#tables);
    this.#services = new Services(node, this.#tables.services, {
      slicesOf: (service) => this.#backends.slicesOf(service),
      holder: (net) => (unguardedServices ? undefined : this.#holder(net)),
    });
    this.#hostPorts = hostPorts ? new HostPorts(this.#tables.services) : undefined;
    this.#routes = new Routes(node, this.#tables.routes, { toNodes: routesToNodes, bgp });
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

  setPodInterfaces(interfaces: ReadonlyMap<string, string>): void {
    const routes = new Map(
      [...interfaces].flatMap(([text, name]) => toNets([text]).map((net) => [net, name] as const)),
    );
    for (const net of this.#podInterfaces?.setRoutes(routes) ?? []) {
      for (const pod of this.#podAddresses.claimants(net)) this.#inputs.pods.touch(pod);
    }
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
    const { ipSets, accountSets } = this.#sets.takeDelta();
    const delta: ModelDelta = {
      inSync: this.#inSync,
      ipSets,
      policies: policies.takeDelta(),
      profiles: profiles.takeDelta(),
      endpoints: endpoints.takeDelta(),
      hostEndpoints: hostEndpoints.takeDelta(),
      nodes: nodes.takeDelta(),
      routes: routes.takeDelta(),
      services: services.takeDelta(),
      problems: problems.takeDelta(),
      ...(this.#released.size > 0 ? { released: [...this.#released].sort() } : {}),
      ...(isUntouched(accountSets) ? {} : { accountSets }),
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
    this.#settlePods();
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
    this.#indexByNamespace("serviceAccounts");
    for (const name of namespaces.takeDirty()) {
      for (const key of this.#within.serviceAccounts.get(name) ?? []) serviceAccounts.touch(key);
      for (const key of this.#within.pods.get(name) ?? []) pods.touch(key);
      for (const key of this.#within.networkSets.get(name) ?? []) networkSets.touch(key);
      const id = profileName({ of: "namespace", namespace: name });
      this.#endpoints.setProfile(id, namespaces.get(name) ? allowAllProfile(id) : undefined);
    }
    for (const key of serviceAccounts.takeDirty()) {
      const [namespace = "", account] = key.split("/");
      const found = serviceAccounts.get(key);
      if (found) this.#sets.setEndpoint(labeledAccount(found, namespaces.get(namespace)));
      else this.#sets.removeEndpoint(`account ${key}`);
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

  #indexByNamespace(name: "pods" | "networkSets" | "serviceAccounts"): void {
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
    const { pods, nodes, blocks, pools, endpointSlices, configurations } = this.#inputs;
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
    if (this.#podInterfaces && (!this.#settled || configurations.dirtyKeys().length > 0)) {
      const prefixes = podInterfacePrefixes(...this.#configurations());
      if (this.#podInterfaces.setPrefixes(prefixes)) for (const key of pods.keys()) pods.touch(key);
    }
    if (pools.dirtyKeys().length > 0) {
      this.#podAddresses.setPools(toNets([...pools.values()].filter(isForPods).map(({ spec }) => spec.cidr)));
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

  /** One pod may take another's interface, which is looked at again then. */
  #settlePods(): void {
    const { pods } = this.#inputs;
    for (let dirty = pods.takeDirty(); dirty.length > 0; dirty = pods.takeDirty()) {
      for (const key of dirty) this.#settlePod(key);
    }
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
    const workload =
      pod && workloadOf(pod, { namespace, account, nets, mac, foreign: this.#podInterfaces !== undefined });
    const id = `pod ${key}`;
    const claims = refused.map(({ net, why }) => `${addressOf(net)} is ${why}`).join("; ");
    const message = `the pod claims addresses that are not its own: ${claims}`;
    if (workload) this.#sets.setEndpoint(workload);
    else this.#sets.removeEndpoint(id);
    const local = workload?.node === this.#node ? workload : undefined;
    const interfaceName = this.#interfaceOf(key, local && pod, nets);
    this.#report(id, [
      ...(pod && claims ? [problem("Pod", pod.metadata, "POD_ADDRESS_REFUSED", message)] : []),
      ...(local && pod && interfaceName === undefined && !isEnding(pod) ? [unknownInterface(pod, nets)] : []),
      ...(this.#hostPorts?.set(key, local && pod, nets) ?? []),
    ]);
    const isEndpoint = local !== undefined && interfaceName !== undefined;
    if (isEndpoint) this.#endpoints.set({ is: "workload", thing: local, interfaceName });
    else this.#endpoints.remove(id);
    this.#routes.problems(id, isEndpoint ? nets.map((net) => ({ is: "workload", net, interfaceName })) : []);
  }

  /** Of a pod of this node; undefined where it has none, or none that is known yet. */
  #interfaceOf(key: string, pod: KubeObject | undefined, nets: readonly Net[]): string | undefined {
    if (!this.#podInterfaces) return pod && podInterfaceName(pod.metadata.namespace ?? "default", pod.metadata.name);
    const found = pod && this.#podInterfaces.find(nets);
    for (const other of this.#podInterfaces.claim(key, found, pod)) this.#inputs.pods.touch(other);
    return this.#podInterfaces.has(key) ? found : undefined;
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
    const { services, nodes, configurations } = this.#inputs;
    const moved = this.#services.standsAt(nodes.get(this.#node));
    const configured = !this.#settled || configurations.dirtyKeys().length > 0;
    const { bpfExcludeCIDRsFromNAT = [] } = configured ? effectiveConfiguration(...this.#configurations()) : {};
    if ((configured && this.#services.excludes(bpfExcludeCIDRsFromNAT)) || moved) {
      for (const { metadata } of services.values()) services.touch(keyOf(metadata));
    }
    for (const key of services.takeDirty()) {
      this.#report(`service ${key}`, this.#services.set(key, services.get(key)));
    }
  }

  #settleRouting(): void {
    const { nodes, blocks, affinities, pools, configurations, bgpConfigurations } = this.#inputs;
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
    const changed = configurations.takeDirty().length + bgpConfigurations.takeDirty().length + changedPools.length;
    if (changed > 0 || !this.#settled) {
      for (const name of this.#configurationNames()) {
        const found = configurations.get(name);
        this.#report(`configuration ${name}`, found ? withoutEffect(found) : []);
      }
      const [common, own, environment] = this.#configurations();
      const advertised = this.#configurationNames().flatMap((name) => bgpConfigurations.get(name)?.spec ?? []);
      this.#tables.settings.set("", settingsOf(common, own, all, environment, advertised));
      this.#settled = true;
    }
  }

  #configurationNames(): string[] {
    return [this.#names.singleton, `node.${this.#node}`];
  }

  /** Each overrides those before it. */
  #configurations(): (DataplaneConfiguration["spec"] | undefined)[] {
    const stored = this.#configurationNames().map((name) => this.#inputs.configurations.get(name)?.spec);
    return [...stored, this.#configuration];
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

/** Its network may be gone before its object is. */
function isEnding({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function unknownInterface({ metadata }: KubeObject, nets: readonly Net[]): ModelProblem {
  const message = `no route of the node leads to ${nets.map(addressOf).join(", ")} by an interface that interfacePrefix of the DataplaneConfiguration names: policy of the pod is not in effect`;
  return problem("Pod", metadata, "POD_INTERFACE_UNKNOWN", message);
}

interface Affinity {
  state: string;
  node: string;
  cidr: string;
  type?: string;
  deleted?: boolean;
}

function isEmpty({ settings, released, inSync: _, ...tables }: ModelDelta): boolean {
  return settings === undefined && released === undefined && Object.values(tables).every(isUntouched);
}

function isUntouched({ set, change = [], remove }: TableDelta<unknown> & { change?: unknown[] }): boolean {
  return set.length + change.length + remove.length === 0;
}

/** Addresses of a pool for load balancers are no pod's, whatever a status says. */
function isForPods({ spec }: IPPool): boolean {
  return !spec.allowedUses?.includes("LoadBalancer");
}
