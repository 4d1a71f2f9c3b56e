import type { Packet, PacketRequest } from "../calc/model.ts";
import type { Received } from "../kit/grpc/protobuf.ts";
import { parseAddress, V4 } from "../kit/ip.ts";
import { type CHECK_REQUEST, UDP } from "./authorization-messages.ts";

type CheckRequest = Received<typeof CHECK_REQUEST>;
type Attributes = NonNullable<CheckRequest["attributes"]>;
type Peer = NonNullable<Attributes["source"]>;

const PROTOCOL = { tcp: 6, udp: 17 };

/** What policy can be asked of the request; undefined where its addresses cannot be read. */
export function readRequest({ attributes }: CheckRequest): Packet | undefined {
  const { source = {}, destination = {}, request } = attributes ?? {};
  const [from, to] = [sideOf(source), sideOf(destination)];
  if (!from || !to || from.ipVersion !== to.ipVersion) return undefined;
  return {
    ipVersion: from.ipVersion,
    protocol: destination.address?.socket_address?.protocol === UDP ? PROTOCOL.udp : PROTOCOL.tcp,
    source: from.address,
    sourcePort: from.port,
    destination: to.address,
    destinationPort: to.port,
    request: {
      ...httpOf(request?.http),
      ...accountOf("sourceAccount", source),
      ...accountOf("destinationAccount", destination),
    },
  };
}

function httpOf(http: { method?: string; path?: string } | undefined): Pick<PacketRequest, "http"> {
  return http?.method ? { http: { method: http.method, path: http.path ?? "" } } : {};
}

/** An IPv4 address in its IPv6 form, as a socket for both families has it, is an IPv4 address. */
const MAPPED = /^::ffff:(?=\d+\.)/i;

function sideOf({ address }: Peer): { ipVersion: 4 | 6; address: string; port: number } | undefined {
  const { address: given = "", port_value: port = 0 } = address?.socket_address ?? {};
  const plain = given.replace(MAPPED, "");
  const parsed = parseAddress(plain);
  return parsed && { ipVersion: parsed.family === V4 ? 4 : 6, address: plain, port };
}

const SPIFFE = /^spiffe:\/\/[^/]+\/ns\/([^/]+)\/sa\/([^/]+)$/;

/** The service account a certificate of the mesh is for. What is no such identity proves no account. */
function accountOf<Side extends "sourceAccount" | "destinationAccount">(
  side: Side,
  { principal = "" }: Peer,
): { [K in Side]?: string } {
  const found = SPIFFE.exec(principal);
  return (found ? { [side]: `${found[1]}/${found[2]}` } : {}) as { [K in Side]?: string };
}
