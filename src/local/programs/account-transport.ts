import type { ApiResponse, Transport } from "../../api/transport.ts";
import type { UserInfo } from "../../apiserver/call.ts";
import type { Client } from "../../cluster/client.ts";
import { connectionFailure } from "../../cluster/connection-failure.ts";
import { statusError } from "../../cluster/failures.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Pod } from "../controllers/workload-types.ts";
import type { RouteFailure } from "./api-route.ts";

export interface AccountTransportOptions {
  pod: Pod;
  /** As the kubelet, which asks for tokens in the pods' names. */
  kubelet: Client;
  clock: Clock;
  /** Requests into the server as this user. */
  serverFor(user: UserInfo): Transport;
  /** `https://HOST:PORT` as the pod's environment says. */
  server: string;
  /** Why that address does not lead to the API server right now. */
  blocked(): RouteFailure | undefined;
  /** The container is no more: nothing of it reaches the server. */
  dead(): boolean;
}

/** As a kubelet mounts them: an hour and a little, replaced when four fifths are over. */
const TOKEN_SECONDS = 3607;
const RENEW_AT = 0.8;
/** An API server trusts what it has found out about a token for this long. */
const REVIEW_MS = 10_000;
const BEARER = /^Bearer\s+(\S+)$/i;

/**
 * The way of one pod to the API server: by the address in its environment if that leads there, as its service account by a token of
 * its own, under the roles bound to it; or as whoever's token a request shows. Without sockets, since both ends are in this process.
 */
export function accountTransport(options: AccountTransportOptions): Transport {
  const { serverFor, blocked, dead, server } = options;
  const account = accountUser(options);
  const fail = (code: string): never => {
    throw connectionFailure(Object.assign(new Error(code), { code }), server);
  };
  return {
    async request(request) {
      request.signal?.throwIfAborted();
      if (dead()) fail("ECONNRESET");
      const failure = blocked();
      if (failure) fail(failure);
      const shown = BEARER.exec(request.headers?.["authorization"] ?? "")?.[1];
      const user = shown === undefined ? await account() : await reviewToken(options.kubelet, shown);
      if (dead()) fail("ECONNRESET");
      if (!user) return UNAUTHORIZED;
      const response = await serverFor(user).request(request);
      return {
        ...response,
        async *lines() {
          for await (const line of response.lines()) {
            if (dead()) fail("ECONNRESET");
            yield line;
          }
        },
      };
    },
    close: () => {},
  };
}

interface Held {
  token: string;
  renewAt: number;
  user: UserInfo | undefined;
  reviewAt: number;
}

/** Who the pod is now; undefined when its token is worth nothing any more. */
function accountUser({ pod, kubelet, clock }: AccountTransportOptions): () => Promise<UserInfo | undefined> {
  let held: Held | undefined;
  let asking: Promise<UserInfo | undefined> | undefined;
  const ask = async (): Promise<UserInfo | undefined> => {
    try {
      const now = clock.now();
      if (!held || now >= held.renewAt) held = await freshToken(kubelet, pod, now);
      if (!held) return undefined;
      held.user = await reviewToken(kubelet, held.token);
      held.reviewAt = now + REVIEW_MS;
      return held.user;
    } finally {
      asking = undefined;
    }
  };
  return async () => {
    if (held && clock.now() < held.reviewAt) return held.user;
    asking ??= ask();
    return asking;
  };
}

async function freshToken(kubelet: Client, pod: Pod, now: number): Promise<Held | undefined> {
  const token = await requestToken(kubelet, pod);
  return token === undefined
    ? undefined
    : { token, renewAt: now + TOKEN_SECONDS * 1000 * RENEW_AT, user: undefined, reviewAt: 0 };
}

/** Undefined when the account is gone. */
export async function requestToken(kubelet: Client, pod: Pod): Promise<string | undefined> {
  const { name, namespace, uid } = pod.metadata;
  const account = (pod.spec["serviceAccountName"] as string | undefined) ?? "default";
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
  const answer = await post(kubelet, `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: TOKEN_SECONDS, boundObjectRef },
  });
  if (answer.code === 404) return undefined;
  return (answer.body as { status: { token: string } }).status.token;
}

async function reviewToken(kubelet: Client, token: string): Promise<UserInfo | undefined> {
  const { body } = await post(kubelet, "/apis/authentication.k8s.io/v1/tokenreviews", {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    spec: { token },
  });
  const { status } = body as {
    status: { authenticated: boolean; user: { username: string; uid?: string; groups: string[] } };
  };
  if (!status.authenticated) return undefined;
  const { username, uid, groups } = status.user;
  return { name: username, groups, ...(uid !== undefined && { uid }) };
}

async function post(kubelet: Client, path: string, body: object): Promise<{ code: number; body: unknown }> {
  const response = await kubelet.raw({
    method: "POST",
    path,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status >= 400 && response.status !== 404) throw statusError(response.status, text);
  return { code: response.status, body: JSON.parse(text) };
}

const REFUSAL = JSON.stringify({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message: "Unauthorized",
  reason: "Unauthorized",
  code: 401,
});
const UNAUTHORIZED: ApiResponse = {
  status: 401,
  headers: { "content-type": "application/json" },
  text: async () => REFUSAL,
  async *lines() {
    yield REFUSAL;
  },
};
