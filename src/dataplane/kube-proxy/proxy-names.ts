/** Names of kube-proxy's chains and sets for a service and its backends: they are derived, so nothing need be searched. */
import { createHash } from "node:crypto";
import type { ServiceBackend, ServicePort } from "../../calc/model.ts";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Bits of SHA-256 in base 32: how kube-proxy shortens names, so that rules can be recognised by them. */
export function shortHash(text: string, length: number): string {
  let bits = 0n;
  for (const byte of createHash("sha256").update(text).digest()) bits = (bits << 8n) | BigInt(byte);
  const first = bits >> BigInt(256 - 5 * length);
  return Array.from({ length }, (_, i) => LETTERS[Number((first >> BigInt(5 * (length - 1 - i))) & 31n)]).join("");
}

/** What a row of the model is called by people: `NAMESPACE/NAME:PORT`, without the colon where the port has no name. */
export interface ServiceName {
  namespace: string;
  name: string;
  portName: string;
  protocol: "tcp" | "udp";
  /** `NAMESPACE/NAME:PORT` */
  shown: string;
}

type NamedService = Pick<ServicePort, "id" | "protocol">;
type Socket = Pick<ServiceBackend, "address" | "port">;

export function serviceName({ id, protocol }: NamedService): ServiceName {
  const [namespace = "", rest = ""] = id.split("/");
  const [name = "", portName = ""] = rest.split(":");
  const shown = `${namespace}/${name}${portName === "" ? "" : `:${portName}`}`;
  return { namespace, name, portName, protocol: protocol === 6 ? "tcp" : "udp", shown };
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export function socketText({ address, port }: Socket): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Every backend a service may send to, each once: the cluster's, and local ones that only Local policies know. */
export function allBackends({ clusterBackends, localBackends }: ServicePort): ServiceBackend[] {
  return [...new Map([...clusterBackends, ...localBackends].map((one) => [socketText(one), one])).values()];
}

/** The chain of a backend in iptables, and the list of clients that stay with it. */
export function backendChain(service: NamedService, backend: Socket): string {
  const { shown, protocol } = serviceName(service);
  return `KUBE-SEP-${shortHash(`${shown}${protocol}${socketText(backend)}`, 16)}`;
}

/** A chain of a service in nftables. */
export function serviceObject(kind: "service" | "local" | "external" | "firewall", service: NamedService): string {
  return hashed(kind, placeOf(service));
}

/** Of a backend in nftables: its chain, or the set of clients that stay with it. */
export function backendObject(kind: "endpoint" | "affinity", service: NamedService, backend: Socket): string {
  return hashed(kind, `${placeOf(service)}__${backend.address.replaceAll(":", ".")}/${backend.port}`);
}

function placeOf(service: NamedService): string {
  const { namespace, name, portName, protocol } = serviceName(service);
  return `${namespace}/${name}/${protocol}/${portName}`;
}

function hashed(kind: string, place: string): string {
  return `${kind}-${shortHash(place, 8)}-${place}`;
}
