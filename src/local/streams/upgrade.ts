import { StatusError } from "../../api/status.ts";
import type { Call, Reply } from "../../apiserver/call.ts";
import { SpdyConnection, type SpdyStream } from "./spdy-connection.ts";

const SPDY = "SPDY/3.1";

/** Turns a request into a connection of streams, or says why it cannot. Newer clients try web sockets first and then this. */
export function spdyUpgrade(
  call: Pick<Call, "headers">,
  protocols: readonly string[],
  serve: (connection: SpdyConnection, protocol: string, onStream: (take: (stream: SpdyStream) => void) => void) => void,
): Reply {
  if ((call.headers["upgrade"] ?? "").toLowerCase() !== SPDY.toLowerCase()) {
    throw new StatusError(400, "BadRequest", `Upgrade request required: only ${SPDY} is spoken here`);
  }
  const offered = (call.headers["x-stream-protocol-version"] ?? "").split(",").map((one) => one.trim());
  const protocol = protocols.find((one) => offered.includes(one));
  if (protocol === undefined) {
    throw new StatusError(403, "Forbidden", `no protocol in common: ${protocols.join(", ")} are spoken here`);
  }
  return {
    status: 101,
    headers: { connection: "Upgrade", upgrade: SPDY, "x-stream-protocol-version": protocol },
    upgrade: (socket) => {
      let take: (stream: SpdyStream) => void = () => {};
      const connection = new SpdyConnection(socket, (stream) => take(stream));
      serve(connection, protocol, (handler) => {
        take = handler;
      });
    },
  };
}
