import type { KubeObject } from "../../api/object.ts";
import type { Column } from "../resource.ts";
import { AGE, dig, labelsText, NAME, NONE, selectorText, text, textAt, wide } from "./column.ts";
import { type Selector, type ServiceSpec, specOf } from "./shapes.ts";

interface EndpointSubset {
  addresses?: { ip?: string }[];
  ports?: { name?: string; port?: number }[];
}

interface SliceEndpoint {
  addresses?: string[];
}

/** The first few of a list and how many more there are, as `kubectl` prints addresses. */
function firstFew(items: readonly string[], most: number): string {
  if (items.length === 0) return NONE;
  const shown = items.slice(0, most).join(",");
  return items.length > most ? `${shown} + ${items.length - most} more...` : shown;
}

function externalAddress(service: KubeObject): string {
  const spec = specOf<ServiceSpec>(service);
  const given = spec.externalIPs ?? [];
  if (spec.type === "ExternalName") return spec.externalName || NONE;
  if (spec.type !== "LoadBalancer") return given.length > 0 ? given.join(",") : NONE;
  const ingress = (dig(service, "status.loadBalancer.ingress") ?? []) as { ip?: string; hostname?: string }[];
  const all = [...ingress.map((one) => one.ip || one.hostname || ""), ...given].filter((address) => address !== "");
  return all.length > 0 ? all.join(",") : "<pending>";
}

function servicePorts(service: KubeObject): string {
  const ports = specOf<ServiceSpec>(service).ports ?? [];
  if (ports.length === 0) return NONE;
  return ports.map((one) => `${one.port}${one.nodePort ? `:${one.nodePort}` : ""}/${one.protocol}`).join(",");
}

function endpointAddresses(endpoints: KubeObject): string {
  const subsets = (endpoints["subsets"] ?? []) as EndpointSubset[];
  const all = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip }) => `${ip}`)
      : ports.flatMap(({ port }) => addresses.map(({ ip }) => `${ip?.includes(":") ? `[${ip}]` : ip}:${port}`)),
  );
  return firstFew(all, 3);
}

function slicePorts(slice: KubeObject): string {
  const ports = (slice["ports"] ?? []) as { port?: number; name?: string }[];
  if (ports.length === 0) return "<unset>";
  return firstFew(
    ports.map(({ port, name }) => String(port ?? name ?? "*")),
    3,
  );
}

function ingressHosts(ingress: KubeObject): string {
  const rules = (dig(ingress, "spec.rules") ?? []) as { host?: string }[];
  const hosts = rules.map(({ host }) => host).filter((host): host is string => !!host);
  return hosts.length === 0 ? "*" : firstFew(hosts, 3);
}

export const NETWORK_COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  Service: [
    NAME,
    text("Type", textAt("spec.type", ""), "How the service is reached."),
    text("Cluster-IP", textAt("spec.clusterIP"), "Address inside the cluster."),
    text("External-IP", externalAddress, "Addresses outside the cluster."),
    text("Port(s)", servicePorts, "Ports, with node ports after a colon."),
    AGE,
    wide(text("Selector", (service) => labelsText(specOf<ServiceSpec>(service).selector))),
  ],
  Endpoints: [NAME, text("Endpoints", endpointAddresses, "Addresses that answer."), AGE],
  EndpointSlice: [
    NAME,
    text("AddressType", textAt("addressType", "")),
    text("Ports", slicePorts),
    text("Endpoints", (slice) => {
      const endpoints = (slice["endpoints"] ?? []) as SliceEndpoint[];
      const addresses = endpoints.flatMap((one) => one.addresses ?? []);
      return addresses.length === 0 ? "<unset>" : firstFew(addresses, 3);
    }),
    AGE,
  ],
  NetworkPolicy: [
    NAME,
    text("Pod-Selector", (policy) => selectorText(dig(policy, "spec.podSelector") as Selector | undefined)),
    AGE,
  ],
  Ingress: [
    NAME,
    text("Class", textAt("spec.ingressClassName")),
    text("Hosts", ingressHosts),
    text("Address", (ingress) => {
      const list = (dig(ingress, "status.loadBalancer.ingress") ?? []) as { ip?: string; hostname?: string }[];
      return list.map((one) => one.ip || one.hostname).join(",");
    }),
    text("Ports", (ingress) => (((dig(ingress, "spec.tls") as unknown[]) ?? []).length > 0 ? "80, 443" : "80")),
    AGE,
  ],
  IngressClass: [
    NAME,
    text("Controller", textAt("spec.controller", "")),
    text("Parameters", (object) => {
      const { apiGroup, kind, name } = (dig(object, "spec.parameters") ?? {}) as Record<string, string>;
      return name === undefined ? NONE : `${kind}${apiGroup ? `.${apiGroup}` : ""}/${name}`;
    }),
    AGE,
  ],
};
