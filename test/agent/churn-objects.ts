import { typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject, ResourceKind } from "../../src/api/object.ts";
import { globalNetworkPolicy, networkPolicy } from "../../src/api/resources/network-policy.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import type { Client } from "../../src/cluster/client.ts";
import { ENDPOINT_SLICES, NAMESPACES, NETWORK_POLICIES, SERVICES } from "../../src/cluster/kinds.ts";

const VENDOR_POLICIES = placesOf(networkPolicy, vendorNames).stored;
const GLOBAL_POLICIES = placesOf(globalNetworkPolicy, vendorNames).stored;

const NAMESPACE_COUNT = 10;
/** Labels that pods have; policies also select others, so that only some of them match pods. */
const APPS = 25;
const SELECTED_APPS = 100;
const VARIANTS = 4;
/** Coprime with the numbers of policies and services: each is changed once before any is changed again. */
const STRIDE = 37;

/** Namespace and labels of the pod in a slot. A pod that replaces another has the same ones, so that the same state returns. */
export function podIn(slot: number): { namespace: string; labels: Record<string, string> } {
  return { namespace: namespaceName(slot), labels: { app: appName(slot % APPS), slot: String(slot % 3) } };
}

interface Entry {
  variant: number;
  /** Part of the name: an object that is deleted and created again has another one. */
  generation: number;
}

/** Policies and services that change without end, and can all return to what they were at first. */
export class ChurnObjects {
  readonly #client: Client;
  readonly #policies: Entry[];
  readonly #services: Entry[];
  #turn = 0;
  changes = 0;

  constructor(client: Client, counts: { policies: number; services: number }) {
    this.#client = client;
    this.#policies = entries(counts.policies);
    this.#services = entries(counts.services);
  }

  async createAll(): Promise<void> {
    for (let at = 0; at < NAMESPACE_COUNT; at++) {
      const metadata = { name: namespaceName(at), labels: { team: `t${at % 3}` } };
      await this.#client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata });
    }
    for (const [at, entry] of this.#policies.entries()) await this.#create(policyOf(at, entry));
    for (const [at, entry] of this.#services.entries()) await this.#createService(at, entry);
  }

  /** Changes so many policies, each third by deleting it and creating another, and a service for each ten. */
  async change(count: number): Promise<void> {
    for (let left = count; left > 0; left--) {
      const at = (this.#turn++ * STRIDE) % this.#policies.length;
      const entry = this.#policies[at] as Entry;
      if (left % 3 === 0) await this.#replacePolicy(at, entry);
      else await this.#setPolicy(at, entry, (entry.variant + 1) % VARIANTS);
      if (left % 10 === 0) await this.#changeService();
    }
  }

  async returnToFirst(): Promise<void> {
    for (const [at, entry] of this.#policies.entries()) {
      if (entry.variant !== 0) await this.#setPolicy(at, entry, 0);
    }
    for (const [at, entry] of this.#services.entries()) {
      if (entry.variant !== 0) await this.#setService(at, entry, 0);
    }
  }

  async #setPolicy(at: number, entry: Entry, variant: number): Promise<void> {
    entry.variant = variant;
    const { kind, object } = policyOf(at, entry);
    await this.#client.patch(kind, object.metadata, { type: "merge", patch: { spec: object["spec"] } });
    this.changes++;
  }

  async #replacePolicy(at: number, entry: Entry): Promise<void> {
    const { kind, object } = policyOf(at, entry);
    await this.#client.delete(kind, object.metadata);
    entry.generation++;
    await this.#create(policyOf(at, entry));
    this.changes += 2;
  }

  async #changeService(): Promise<void> {
    const at = (this.#turn * STRIDE) % this.#services.length;
    const entry = this.#services[at] as Entry;
    if (this.#turn % 2 === 0) return await this.#setService(at, entry, (entry.variant + 1) % VARIANTS);
    const { slice, service } = serviceOf(at, entry);
    await this.#client.delete(ENDPOINT_SLICES, slice.metadata);
    await this.#client.delete(SERVICES, service.metadata);
    entry.generation++;
    await this.#createService(at, entry);
    this.changes += 2;
  }

  async #setService(at: number, entry: Entry, variant: number): Promise<void> {
    entry.variant = variant;
    const { slice } = serviceOf(at, entry);
    await this.#client.patch(ENDPOINT_SLICES, slice.metadata, {
      type: "merge",
      patch: { endpoints: slice["endpoints"] },
    });
    this.changes++;
  }

  async #create({ kind, object }: { kind: ResourceKind; object: KubeObject }): Promise<void> {
    await this.#client.create(kind, object);
  }

  async #createService(at: number, entry: Entry): Promise<void> {
    const { service, slice } = serviceOf(at, entry);
    await this.#client.create(SERVICES, service);
    await this.#client.create(ENDPOINT_SLICES, slice);
  }
}

function entries(count: number): Entry[] {
  return Array.from({ length: count }, () => ({ variant: 0, generation: 0 }));
}

function namespaceName(at: number): string {
  return `team-${at % NAMESPACE_COUNT}`;
}

function appName(at: number): string {
  return `app-${at}`;
}

/** Eight of ten are Kubernetes' own, one is ours with a namespace, one is global. */
function policyOf(at: number, { variant, generation }: Entry): { kind: ResourceKind; object: KubeObject } {
  const group = Math.floor(at / 10) % SELECTED_APPS;
  const name = `p${at}-${generation}`;
  const namespace = namespaceName(group);
  const app = appName(group);
  const peer = appName((group + variant + 1) % APPS);
  if (at % 10 < 8) {
    const spec = { podSelector: { matchLabels: { app } }, policyTypes: ["Ingress"], ...kubernetesRules(variant, peer) };
    const metadata = { name, namespace };
    return { kind: NETWORK_POLICIES, object: { ...typeOf(NETWORK_POLICIES), metadata, spec } };
  }
  const spec = { order: at, selector: `app == '${app}'`, types: ["Ingress", "Egress"], ...vendorRules(variant, peer) };
  return at % 10 === 8
    ? {
        kind: VENDOR_POLICIES,
        object: { ...typeOf(VENDOR_POLICIES), metadata: { name: `default.${name}`, namespace }, spec },
      }
    : { kind: GLOBAL_POLICIES, object: { ...typeOf(GLOBAL_POLICIES), metadata: { name: `default.${name}` }, spec } };
}

function kubernetesRules(variant: number, app: string): { ingress: object[] } {
  const ports = [{ protocol: "TCP", port: 8000 + variant }];
  const fromApp = { from: [{ podSelector: { matchLabels: { app } }, namespaceSelector: {} }], ports };
  const fromTeam = { from: [{ namespaceSelector: { matchLabels: { team: "t1" } } }] };
  const fromNet = {
    from: [{ ipBlock: { cidr: "192.0.2.0/24", except: [`192.0.2.${16 * (variant + 1)}/28`] } }],
    ports,
  };
  return { ingress: [[fromApp], [fromApp, fromTeam], [fromNet], [fromNet, fromApp]][variant] ?? [] };
}

function vendorRules(variant: number, app: string): { ingress: object[]; egress: object[] } {
  const tcp = { action: "Allow", protocol: "TCP" };
  const fromApp = { ...tcp, source: { selector: `app == '${app}'` }, destination: { ports: [9000 + variant] } };
  const toNets = { ...tcp, destination: { nets: ["198.51.100.0/24", `203.0.113.${variant}/32`] } };
  return { ingress: variant === 3 ? [] : [fromApp], egress: [toNets, { action: "Allow" }] };
}

function serviceOf(at: number, { variant, generation }: Entry): { service: KubeObject; slice: KubeObject } {
  const name = `s${at}-${generation}`;
  const namespace = namespaceName(at);
  const clusterIP = `10.96.${1 + Math.floor(at / 200)}.${1 + (at % 200)}`;
  const ports = [{ name: "http", port: 8080, protocol: "TCP" }];
  const endpoints = Array.from({ length: 2 + variant }, (_, backend) => ({
    addresses: [`203.0.113.${1 + ((at * VARIANTS + backend) % 250)}`],
    conditions: { ready: true, serving: true, terminating: false },
  }));
  return {
    service: {
      ...{ apiVersion: "v1", kind: "Service", metadata: { name, namespace } },
      spec: { type: "ClusterIP", clusterIP, clusterIPs: [clusterIP], ipFamilies: ["IPv4"], ports },
    },
    slice: {
      ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
      metadata: { name, namespace, labels: { "kubernetes.io/service-name": name } },
      ...{ ports, endpoints },
    },
  };
}
