import { createHash } from "node:crypto";
import type { ServiceBackend, ServicePort } from "../../../policy/model.ts";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Bits of SHA-256 in base 32: how the service proxies people have make short names of long ones, so that rules can be told by them. */
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

export function serviceName({ id, protocol }: Pick<ServicePort, "id" | "protocol">): ServiceName {
  const [namespace = "", rest = ""] = id.split("/");
  const [name = "", portName = ""] = rest.split(":");
  const shown = `${namespace}/${name}${portName === "" ? "" : `:${portName}`}`;
  return { namespace, name, portName, protocol: protocol === 6 ? "tcp" : "udp", shown };
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export function socketText({ address, port }: Pick<ServiceBackend, "address" | "port">): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Every backend a service may send to, each once: the cluster's, and local ones that only Local policies know. */
export function allBackends({ clusterBackends, localBackends }: ServicePort): ServiceBackend[] {
  return [...new Map([...clusterBackends, ...localBackends].map((one) => [socketText(one), one])).values()];
}

/** What the proxy of one node must know beside services. */
export interface ProxyNode {
  /** The pods' own networks: who asks a cluster address from outside of them looks like the node afterwards. */
  clusterCidrs: readonly string[];
  /** Addresses at which node ports are served, where the proxy wants a list. */
  addresses: readonly string[];
}

/** The mark, of the packet, that asks for masquerading; the same bit in every service proxy. */
export const MASQUERADE_MARK = "0x4000";
