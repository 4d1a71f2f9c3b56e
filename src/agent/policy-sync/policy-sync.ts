import { join } from "node:path";
import { PLUGIN_INFO, PLUGIN_REGISTRATION, REGISTRATION_STATUS } from "../../api/protocol/csi.ts";
import { POLICY_SYNC_DRIVER } from "../../api/protocol/policy-sync.ts";
import { podPolicy } from "../../calc/policy/pod-policy.ts";
import type { Clock } from "../../kit/clock.ts";
import { type GrpcMethods, grpcServer, unary } from "../../kit/grpc/grpc-server.ts";
import type { Log } from "../../kit/log.ts";
import { listenAtSocket } from "../../kit/unix-socket.ts";
import type { ModelLoop } from "../model-loop.ts";
import { driverPlaces } from "./driver-places.ts";
import { openPodSocket } from "./pod-socket.ts";
import { volumeDriver } from "./volume-driver.ts";

export interface PolicySyncOptions {
  node: string;
  version: string;
  /** Undefined: the agent's pod does not see it. */
  kubeletDir: string | undefined;
  loop: Pick<ModelLoop, "model" | "onTurn">;
  /** `NAMESPACE/NAME` of the pod with this UID; undefined where there is none. */
  podOf(uid: string): string | undefined;
  clock: Clock;
  log: Log;
}

export interface PolicySync {
  /** Why sidecars get no policy although the setting asks for it; undefined: they do, or it does not ask. */
  failure(): string | undefined;
  close(): Promise<void>;
}

const OWNER_ONLY = 0o600;
const VERSIONS = ["1.0.0"];
/** Nothing else may happen on the node that would be a reason to try again. */
const RETRY_MS = 5_000;

/** Serves sidecars while `policySyncPathPrefix` is set, which may change at any time. */
export function followPolicySync(options: PolicySyncOptions): PolicySync {
  const { loop, log, clock } = options;
  let isServed: boolean | undefined = false;
  let failure: string | undefined;
  let stop = () => {};
  let turn = Promise.resolve();
  let isChanging = false;
  let cancelRetry = () => {};
  const follow = () => {
    if (!loop.model.inSync) return;
    const wanted = Boolean(loop.model.settings.configuration.policySyncPathPrefix);
    if (wanted === isServed || isChanging) return;
    isChanging = true;
    isServed = wanted;
    turn = turn.then(async () => {
      stop();
      stop = () => {};
      try {
        if (wanted) stop = await serve(options);
        failure = undefined;
        log.info({}, wanted ? "serving policy to sidecars" : "sidecars are not served");
      } catch (error) {
        const { message } = error as Error;
        if (message !== failure) log.error({ error }, "sidecars get no policy, trying again");
        failure = message;
        isServed = undefined;
        cancelRetry = clock.setTimeout(follow, RETRY_MS);
      } finally {
        isChanging = false;
      }
    });
  };
  const end = loop.onTurn(follow);
  follow();
  return {
    failure: () => failure,
    async close() {
      end();
      await turn;
      cancelRetry();
      stop();
    },
  };
}

async function serve(options: PolicySyncOptions): Promise<() => void> {
  const { kubeletDir, node, version, loop, podOf, clock } = options;
  if (kubeletDir === undefined) throw new Error("the agent's pod does not mount the kubelet's directories");
  const { plugin, registration } = driverPlaces(kubeletDir);
  const driver = volumeDriver({
    ...{ driver: POLICY_SYNC_DRIVER, version, node, kubeletDir, recordsDir: join(plugin, "volumes") },
    log: options.log,
    openSocket: (path, uid) =>
      openPodSocket(
        path,
        {
          policy: () => (loop.model.inSync ? podPolicy(loop.model, podOf(uid)) : undefined),
          onChange: (listener) => loop.onTurn(listener),
        },
        clock,
      ),
  });
  const ends = [() => driver.close()];
  const end = () => {
    for (const one of ends.reverse()) one();
  };
  try {
    await driver.restore();
    const endpoint = join(plugin, "csi.sock");
    ends.push(await serveAt(endpoint, driver.methods));
    // The kubelet finds a driver by its socket here, and may call it from then on.
    ends.push(await serveAt(registration, registrationMethods(endpoint, options.log)));
  } catch (error) {
    end();
    throw error;
  }
  return end;
}

function registrationMethods(endpoint: string, log: Log): GrpcMethods {
  const info = { type: "CSIPlugin", name: POLICY_SYNC_DRIVER, endpoint, supported_versions: VERSIONS };
  return {
    [`${PLUGIN_REGISTRATION}/GetInfo`]: unary(...PLUGIN_INFO, () => info),
    [`${PLUGIN_REGISTRATION}/NotifyRegistrationStatus`]: unary(
      ...REGISTRATION_STATUS,
      ({ plugin_registered, error }) => {
        if (!plugin_registered) log.error({ error }, "the kubelet refuses the volume driver of sidecars");
        return {};
      },
    ),
  };
}

async function serveAt(path: string, methods: GrpcMethods): Promise<() => void> {
  const { server, close } = grpcServer(methods);
  const removeSocket = await listenAtSocket(server, path, OWNER_ONLY);
  return () => {
    removeSocket();
    close();
  };
}
