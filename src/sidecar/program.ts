import { rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Program } from "../cluster/program.ts";
import { sleep, systemClock } from "../kit/clock.ts";
import { grpcClient } from "../kit/grpc/grpc-client.ts";
import { grpcServer, unary } from "../kit/grpc/grpc-server.ts";
import { listenAtSocket } from "../kit/unix-socket.ts";
import { AUTHORIZATION_METHODS, CHECK_REQUEST, CHECK_RESPONSE } from "./authorization-messages.ts";
import { authorize } from "./authorize.ts";
import { readSidecarConfig } from "./config.ts";
import { errors } from "./errors.ts";
import { followPolicy } from "./follow-policy.ts";

/** The proxy runs as another user of the same pod; only containers that mount the volume see the socket. */
const ANYONE = 0o666;
/** A proxy has one connection for each of its threads. It sends all headers, 60 KiB of them by default, and may send certificates. */
const LIMITS = { connections: 128, streams: 1_000, messageBytes: 256 * 1024 };
const CHECK_MS = 5_000;

/** Answers the mesh's proxy in the same pod, by the policy that the node's agent knows for this pod. */
export const sidecarProgram: Program = async ({ env, log, signal, clock = systemClock }) => {
  const { policySocket, listenSocket, release } = readSidecarConfig(env);
  const ready = join(dirname(listenSocket), "ready");
  rmSync(ready, { force: true });
  const changed = new AbortController();
  const follower = followPolicy({
    ...{ socket: policySocket, release, clock, log, signal },
    onSync() {
      log.info({}, "in sync with the node's agent");
      changed.abort();
    },
  });
  const check = unary(CHECK_REQUEST, CHECK_RESPONSE, (request) => authorize(follower.policy(), request));
  const { server, close } = grpcServer(
    Object.fromEntries(AUTHORIZATION_METHODS.map((method) => [method, check])),
    LIMITS,
  );
  const removeSocket = await listenAtSocket(server, listenSocket, ANYONE).catch((error: Error) => {
    throw errors.SIDECAR_NOT_LISTENING(listenSocket, error.message);
  });
  log.info({ listenSocket, policySocket }, "answering; everything is denied until policy is known");
  // Ready is what has been seen to answer through its own socket: the kubelet's probe asks for the file.
  const asking = grpcClient(listenSocket);
  let wasReady = false;
  while (!signal.aborted) {
    const isReady = follower.policy() !== undefined && (await answers(asking));
    if (isReady && !wasReady) writeFileSync(ready, "");
    if (!isReady) rmSync(ready, { force: true });
    wasReady = isReady;
    await sleep(clock, CHECK_MS, changed.signal.aborted ? signal : AbortSignal.any([signal, changed.signal]));
  }
  rmSync(ready, { force: true });
  asking.close();
  removeSocket();
  close();
  await follower.done;
};

async function answers(client: ReturnType<typeof grpcClient>): Promise<boolean> {
  const [method] = AUTHORIZATION_METHODS;
  return client.call(method, [CHECK_REQUEST, CHECK_RESPONSE], {}, CHECK_MS).then(
    ({ status }) => status !== undefined,
    () => false,
  );
}
