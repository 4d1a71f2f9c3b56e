import { POLICY_SYNC, POLICY_SYNC_METHOD, POLICY_SYNC_VERSIONS } from "../api/protocol/policy-sync.ts";
import { PodPolicyCopy, type PodPolicyDelta } from "../calc/policy/pod-policy.ts";
import { type Backoff, backoffDelay } from "../kit/backoff.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import { grpcClient } from "../kit/grpc/grpc-client.ts";
import type { Received } from "../kit/grpc/protobuf.ts";
import type { Log } from "../kit/log.ts";

type Update = Received<(typeof POLICY_SYNC)[1]>;

export interface PolicyFollower {
  /** Undefined until it has been in sync once. While the agent is away it stays as it was, as the node's own filter does. */
  policy(): PodPolicyCopy | undefined;
  /** Runs until stopped. */
  done: Promise<void>;
}

export interface FollowOptions {
  socket: string;
  release: string;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  onSync(): void;
}

/** An agent that restarts is back within seconds, and until it is the old policy decides. */
const BACKOFF: Backoff = { initialMs: 100, maxMs: 3_000, jitter: 0.3 };

/** Keeps up with what the node's agent says of this pod. */
export function followPolicy({ socket, release, clock, log, signal, onSync }: FollowOptions): PolicyFollower {
  let policy: PodPolicyCopy | undefined;
  const connectOnce = async (onAnswer: () => void) => {
    const client = grpcClient(socket);
    const updates = new Updates();
    try {
      const request = { ...POLICY_SYNC_VERSIONS, release };
      const take = (update: Update) => {
        onAnswer();
        const whole = updates.take(update);
        if (!whole || whole === policy) return;
        policy = whole;
        onSync();
      };
      await client.stream(POLICY_SYNC_METHOD, POLICY_SYNC, request, take, signal);
    } catch (error) {
      // Half of an update may have been taken: nothing is known then.
      if (updates.broken) policy = undefined;
      throw error;
    } finally {
      client.close();
    }
  };
  const run = async () => {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        await connectOnce(() => {
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ error: (error as Error).message, socket }, "no policy from the node's agent, trying again");
      }
      await sleep(clock, backoffDelay(BACKOFF, failures + 1, Math.random()), signal);
    }
  };
  return { policy: () => policy, done: run() };
}

/** Puts the updates of one connection together. */
class Updates {
  #policy: PodPolicyCopy | undefined;
  #isWhole = false;
  broken = false;

  /** The policy, once all of it is there. */
  take({ version, fresh, in_sync, content }: Update): PodPolicyCopy | undefined {
    this.broken = true;
    if (version < POLICY_SYNC_VERSIONS.oldest || version > POLICY_SYNC_VERSIONS.newest) {
      throw new Error(`the agent speaks version ${version} of the policy sync API`);
    }
    if (fresh || !this.#policy) {
      this.#policy = new PodPolicyCopy();
      this.#isWhole = false;
    }
    if (content.length > 0) this.#policy.apply(JSON.parse(content.toString()) as PodPolicyDelta);
    this.#isWhole ||= in_sync;
    this.broken = false;
    return this.#isWhole ? this.#policy : undefined;
  }
}
