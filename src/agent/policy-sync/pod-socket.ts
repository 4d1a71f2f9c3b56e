import { POLICY_SYNC_METHOD } from "../../api/protocol/policy-sync.ts";
import type { Clock } from "../../kit/clock.ts";
import { type GrpcServer, grpcServer } from "../../kit/grpc/grpc-server.ts";
import { listenAtSocket } from "../../kit/unix-socket.ts";
import { type PolicySource, syncMethod } from "./sync-method.ts";

export interface PodSocket {
  close(): void;
}

/** One sidecar has one connection with one call; a second one covers its restart. */
const LIMITS = { messageBytes: 4_096, connections: 4, streams: 4 };
/** Users of the pod connect, whoever they are; no other pod sees the directory. */
const ANYONE = 0o666;
/** A pod that connects, calls or pings more often than this is let wait: each time costs the agent of all pods. */
const MOST_ASKED = 50;
const REST_MS = 10_000;

/** Serves the policy sync API to one pod, at a socket in that pod's volume: the socket says who asks. */
export async function openPodSocket(path: string, source: PolicySource, clock: Clock): Promise<PodSocket> {
  const methods = { [POLICY_SYNC_METHOD]: syncMethod(source) };
  const servers = new Set<GrpcServer>();
  let removeSocket = () => {};
  let cancelRest = () => {};
  const open = async () => {
    const opened = grpcServer(methods, LIMITS);
    let asked = 0;
    let since = clock.now();
    const isTooOften = () => {
      if (clock.now() - since > REST_MS) [asked, since] = [0, clock.now()];
      if (++asked <= MOST_ASKED) return false;
      if (!opened.server.listening) return true;
      opened.stopAccepting();
      cancelRest = clock.setTimeout(() => void open().catch(() => undefined), REST_MS);
      return true;
    };
    // Connections that are open go on, but for the one that asks too often: the sidecar's own has one call.
    opened.server.on("connection", isTooOften);
    opened.server.on("session", (session) => {
      const ask = () => {
        if (isTooOften()) session.destroy();
      };
      session.on("stream", ask);
      session.on("ping", ask);
    });
    opened.server.on("close", () => servers.delete(opened));
    servers.add(opened);
    removeSocket = await listenAtSocket(opened.server, path, ANYONE);
  };
  await open();
  return {
    close() {
      cancelRest();
      removeSocket();
      for (const server of servers) server.close();
    },
  };
}
