import type { Duplex } from "node:stream";
import type { Call, Reply } from "../../apiserver/call.ts";
import type { SpdyStream } from "./spdy-connection.ts";
import { spdyUpgrade } from "./upgrade.ts";

const PROTOCOLS = ["portforward.k8s.io"];

/** `kubectl port-forward`: two streams for each connection, one for its bytes and one for why it could not be had. */
export function podPortForward(call: Call, connect: (port: number) => Promise<Duplex>): Reply {
  return spdyUpgrade(call, PROTOCOLS, (_connection, _protocol, onStream) => {
    const waiting = new Map<string, SpdyStream>();
    onStream((stream) => {
      const { requestid = "", streamtype } = stream.headers;
      const other = waiting.get(requestid);
      if (!other) {
        waiting.set(requestid, stream);
        return;
      }
      waiting.delete(requestid);
      const [data, error] = streamtype === "data" ? [stream, other] : [other, stream];
      void forward(data, error, connect);
    });
  });
}

async function forward(data: SpdyStream, error: SpdyStream, connect: (port: number) => Promise<Duplex>): Promise<void> {
  const port = Number(data.headers["port"]);
  let pod: Duplex;
  try {
    pod = await connect(port);
  } catch (failure) {
    const why = failure instanceof Error ? failure.message : String(failure);
    error.end(`failed to connect to port ${port} in the pod: ${why}`);
    data.end();
    return;
  }
  error.end();
  pod.on("error", () => data.destroy());
  data.on("close", () => pod.destroy());
  data.pipe(pod).pipe(data);
}
