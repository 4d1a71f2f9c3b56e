import { commonVersion, POLICY_SYNC, POLICY_SYNC_VERSIONS } from "../../api/protocol/policy-sync.ts";
import { type PodPolicy, podPolicyDelta } from "../../calc/policy/pod-policy.ts";
import { GRPC_STATUS, GrpcError } from "../../kit/grpc/grpc-frames.ts";
import { type GrpcMethod, streaming } from "../../kit/grpc/grpc-server.ts";

export interface PolicySource {
  /** Undefined: the cluster's objects have not been listed yet, and what is absent may only be late. */
  policy(): PodPolicy | undefined;
  /** Calls back after each change of the model; what it returns ends that. */
  onChange(listener: () => void): () => void;
}

/**
 * The policy sync API for one pod: all there is, then each change. For a sidecar that reads slowly nothing is queued: it gets the difference to what it
 * was sent last, when it can take more.
 */
export function syncMethod({ policy, onChange }: PolicySource): GrpcMethod {
  return streaming(...POLICY_SYNC, ({ oldest, newest }, answers) => {
    const version = commonVersion({ oldest, newest });
    if (version === undefined) {
      const { oldest: ours, newest: last } = POLICY_SYNC_VERSIONS;
      const message = `this agent speaks versions ${ours} to ${last} of the policy sync API, the sidecar ${oldest} to ${newest}`;
      answers.end(new GrpcError(GRPC_STATUS.failedPrecondition, message));
      return;
    }
    let sent: PodPolicy | undefined;
    let isBehind = false;
    const push = () => {
      const now = isBehind ? undefined : policy();
      const delta = now && podPolicyDelta(sent, now);
      if (!delta) return;
      const content = Buffer.from(JSON.stringify(delta));
      isBehind = !answers.send({ version, fresh: sent === undefined, in_sync: true, content });
      sent = now;
    };
    answers.onDrain(() => {
      isBehind = false;
      push();
    });
    const stop = onChange(push);
    answers.signal.addEventListener("abort", stop, { once: true });
    push();
  });
}
