import type { Packet } from "../../src/calc/model.ts";
import { encode, int, message, text, texts } from "../../src/kit/grpc/protobuf.ts";

/**
 * Envoy's side of the external authorization API: what a proxy fills in of `CheckRequest`, with the fields the sidecar has no use for,
 * by the numbers of the published files.
 */
const SOCKET_ADDRESS = { protocol: int(1), address: text(2), port_value: int(3), resolver_name: text(5) };
const PEER = {
  address: message(1, { socket_address: message(1, SOCKET_ADDRESS) }),
  service: text(2),
  labels: texts(3),
  principal: text(4),
  certificate: text(5),
};
const HTTP = {
  id: text(1),
  method: text(2),
  headers: texts(3),
  path: text(4),
  host: text(5),
  scheme: text(6),
  size: int(9),
  protocol: text(10),
};
const ENVOY_CHECK_REQUEST = {
  attributes: message(1, {
    source: message(1, PEER),
    destination: message(2, PEER),
    request: message(4, { time: message(1, { seconds: int(1), nanos: int(2) }), http: message(2, HTTP) }),
    context_extensions: texts(10),
    tls_session: message(12, { sni: text(1) }),
  }),
};

/** As a proxy words it; the reverse of what the sidecar reads. */
export function checkRequest({ source, destination, request = {}, ...packet }: Packet): Buffer {
  const peer = (address: string, port: number | undefined, account: string | undefined) => ({
    address: { socket_address: { protocol: packet.protocol === 17 ? 1 : 0, address, port_value: port } },
    ...(account === undefined
      ? {}
      : { principal: `spiffe://cluster.local/${account.replace(/^(.*)\//, "ns/$1/sa/")}` }),
  });
  const { http, sourceAccount, destinationAccount } = request;
  return encode(ENVOY_CHECK_REQUEST, {
    attributes: {
      source: peer(source, packet.sourcePort, sourceAccount),
      destination: peer(destination, packet.destinationPort, destinationAccount),
      request: {
        time: { seconds: 1_700_000_000 },
        ...(http && { http: { ...http, id: "1", headers: HEADERS, host: "shop", scheme: "http", size: -1 } }),
      },
      tls_session: { sni: "outbound_.80_._.shop" },
    },
  });
}

const HEADERS = {
  ":authority": "shop",
  ":scheme": "http",
  "x-request-id": "9fe4c0f0-5f0e-4a4e-8a8b-2a3a1f5d4c2b",
  "x-forwarded-proto": "http",
  "user-agent": "curl/8.5.0",
  accept: "*/*",
};
