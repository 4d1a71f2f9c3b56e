import { int, message, text } from "../kit/grpc/protobuf.ts";

/**
 * Envoy's external authorization API, as far as it is read or said here. The packages of its versions differ, the numbers of these fields do not.
 * Field numbers: envoy/service/auth/v3/external_auth.proto and attribute_context.proto, envoy/config/core/v3/address.proto, google/rpc/status.proto.
 */
export const AUTHORIZATION_METHODS = [
  "envoy.service.auth.v3.Authorization/Check",
  "envoy.service.auth.v2.Authorization/Check",
  "envoy.service.auth.v2alpha.Authorization/Check",
] as const;

const SOCKET_ADDRESS = { protocol: int(1), address: text(2), port_value: int(3) };
const PEER = { address: message(1, { socket_address: message(1, SOCKET_ADDRESS) }), principal: text(4) };
const HTTP_REQUEST = { method: text(2), path: text(4) };

export const CHECK_REQUEST = {
  attributes: message(1, {
    source: message(1, PEER),
    destination: message(2, PEER),
    request: message(4, { http: message(2, HTTP_REQUEST) }),
  }),
};

export const CHECK_RESPONSE = {
  status: message(1, { code: int(1), message: text(2) }),
  denied_response: message(2, { status: message(1, { code: int(1) }) }),
};

/** Of `SOCKET_ADDRESS.protocol`. */
export const UDP = 1;
