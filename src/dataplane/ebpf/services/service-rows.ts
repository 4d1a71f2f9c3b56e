/** One port of a service as the maps have it. Pure: the writer passes the numbers of services and lists. */

import type { Net, ServiceBackend, ServicePort } from "../../../calc/model.ts";
import { BACKEND_FLAG, backendLayout, FRONTEND_FLAG, frontendKeyLayout } from "../../../gen/bpf/layout.gen.ts";
import { parseAddress, V4 } from "../../../kit/ip.ts";
import { errors } from "../errors.ts";
import { addressText, netBytes } from "../net-bytes.ts";

export interface ServiceRow {
  readonly id: string;
  /** `NAMESPACE/NAME:PORT`, for the flow logs; a pod's own port is no Service's. */
  readonly name: string | undefined;
  readonly protocol: number;
  readonly affinity: number;
  readonly frontends: readonly FrontendRow[];
  /** Backends one after the other, as values of the map. */
  readonly cluster: Buffer;
  /** Those of this node: by the rules for local backends, or, where none holds, for clients another node sends us to answer ourselves. */
  readonly local: Buffer;
  readonly ranges: readonly SourceRange[];
}

export interface FrontendRow {
  /** A key of the map, as text of one byte a letter: texts can be keys here too. */
  readonly key: string;
  readonly flags: number;
  /** The service with the lower rank owns an address that two claim. */
  readonly rank: number;
}

export interface SourceRange {
  readonly prefixLength: number;
  readonly address: Uint8Array;
}

/** A service cannot take over the cluster IP of another by listing it as an external IP. */
const RANK = { cluster: 0, loadBalancer: 1, external: 2, nodePort: 3 } as const;

/** Stands for every address of the node, of its family. */
const ANY_ADDRESS = { 4: "0.0.0.0", 6: "::" } as const;

export function serviceRow(service: ServicePort): ServiceRow {
  const frontends = frontendsOf(service);
  return {
    id: service.id,
    name: service.hostPort ? undefined : serviceName(service),
    protocol: service.protocol,
    affinity: service.affinitySeconds,
    frontends,
    cluster: packBackends(service.clusterBackends),
    local: packBackends(localBackends(service, frontends)),
    ranges: (service.sourceRanges ?? []).map(sourceRange),
  };
}

/** The port by its name, or by its number where it has none. */
function serviceName({ id, port }: ServicePort): string {
  const [whole] = id.split(/\/(?:tcp|udp)\//);
  return whole?.endsWith(":") ? `${whole}${port}` : (whole ?? id);
}

export function sourceRange(net: Net): SourceRange {
  const { prefixLength, bytes } = netBytes(net);
  return { prefixLength, address: bytes };
}

function localBackends(service: ServicePort, frontends: readonly FrontendRow[]): readonly ServiceBackend[] {
  if (service.internalLocal || service.externalLocal) return service.localBackends;
  const isAskedFromOutside = frontends.some(({ flags }) => (flags & FRONTEND_FLAG.FRONTEND_EXTERNAL) !== 0);
  return isAskedFromOutside ? service.clusterBackends.filter(({ local }) => local) : [];
}

function frontendsOf(service: ServicePort): FrontendRow[] {
  const { protocol, port, nodePort } = service;
  const any = service.anyBackends ? FRONTEND_FLAG.FRONTEND_ANY : 0;
  const internal = any | (service.internalLocal ? FRONTEND_FLAG.FRONTEND_INTERNAL_LOCAL : 0);
  const externalLocal = service.externalLocal ? FRONTEND_FLAG.FRONTEND_EXTERNAL_LOCAL : 0;
  const external = any | FRONTEND_FLAG.FRONTEND_EXTERNAL | externalLocal;
  const ranged = external | (service.sourceRanges ? FRONTEND_FLAG.FRONTEND_SOURCE_RANGES : 0);
  const at = (address: string, rank: number, flags: number, ownPort = port): FrontendRow => ({
    key: frontendKey(address, ownPort, protocol),
    flags,
    rank,
  });
  const rows = [
    ...(service.clusterAddress === null ? [] : [at(service.clusterAddress, RANK.cluster, internal)]),
    ...service.loadBalancerAddresses.map((address) => at(address, RANK.loadBalancer, ranged)),
    ...service.externalAddresses.map((address) => at(address, RANK.external, external)),
  ];
  if (nodePort !== null) {
    const flags = external | FRONTEND_FLAG.FRONTEND_NODE_PORT;
    rows.push(at(ANY_ADDRESS[service.family], RANK.nodePort, flags, nodePort));
  }
  // An address may be both a load balancer's and an external one: the stricter, which comes first, holds.
  return rows.filter(({ key }, index) => rows.findIndex((row) => row.key === key) === index);
}

/** Where keys are put together. */
const KEY = Buffer.alloc(frontendKeyLayout.size);

export function frontendKey(address: string, port: number, protocol: number): string {
  writeAddress(KEY, frontendKeyLayout.at.address, address);
  KEY.writeUInt16LE(port, frontendKeyLayout.at.port);
  KEY.writeUInt8(protocol, frontendKeyLayout.at.protocol);
  return KEY.toString("latin1");
}

/** As people write it. */
export function frontendText(key: string): string {
  const { address, port, protocol } = frontendKeyLayout.read(Buffer.from(key, "latin1"));
  const text = addressText(address);
  return `${text.includes(":") ? `[${text}]` : text}:${port}/${protocol === 6 ? "TCP" : "UDP"}`;
}

function packBackends(backends: readonly ServiceBackend[]): Buffer {
  const { size, at } = backendLayout;
  // Out of the pool: memory of its own for each would be most of the work.
  const bytes = Buffer.allocUnsafe(backends.length * size).fill(0);
  for (const [index, { address, port, local }] of backends.entries()) {
    const base = index * size;
    writeAddress(bytes, base + at.address, address);
    bytes.writeUInt16LE(port, base + at.port);
    bytes.writeUInt16LE(local ? BACKEND_FLAG.BACKEND_LOCAL : 0, base + at.flags);
  }
  return bytes;
}

/** The address and port of each backend of a packed list, as text that can be compared. */
export function backendNames(packed: Buffer): string[] {
  const { size, at } = backendLayout;
  return Array.from({ length: packed.length / size }, (_, index) =>
    packed.toString("latin1", index * size + at.address, index * size + at.port + 2),
  );
}

/** As `backendNames` has it. */
export function backendName(address: string, port: number): string {
  return frontendKey(address, port, 0).slice(0, frontendKeyLayout.at.port + 2);
}

/** As `netBytes`, without the detour through numbers of any length: a node writes a hundred thousand of these when it starts. */
function writeAddress(bytes: Buffer, at: number, text: string): void {
  if (writeV4(bytes, at, text)) return;
  const parsed = parseAddress(text);
  if (!parsed || parsed.family === V4) throw errors.EBPF_BAD_MODEL(`${text} is no address`);
  bytes.writeBigUInt64BE(parsed.value >> 64n, at);
  bytes.writeBigUInt64BE(parsed.value & 0xffff_ffff_ffff_ffffn, at + 8);
}

function writeV4(bytes: Buffer, at: number, text: string): boolean {
  const [ZERO, DOT] = [48, 46];
  let [value, part] = [0, 0];
  for (let index = 0; index < text.length; index++) {
    const letter = text.charCodeAt(index);
    if (letter === DOT) {
      value = value * 256 + part;
      part = 0;
    } else if (letter >= ZERO && letter <= ZERO + 9) part = part * 10 + letter - ZERO;
    else return false;
  }
  bytes.fill(0, at, at + 10);
  bytes.writeUInt16BE(0xffff, at + 10);
  bytes.writeUInt32BE(value * 256 + part, at + 12);
  return true;
}
