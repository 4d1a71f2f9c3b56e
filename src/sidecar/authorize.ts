import type { PodPolicyCopy } from "../calc/policy/pod-policy.ts";
import { GRPC_STATUS } from "../kit/grpc/grpc-frames.ts";
import type { Received, Sent } from "../kit/grpc/protobuf.ts";
import type { CHECK_REQUEST, CHECK_RESPONSE } from "./authorization-messages.ts";
import { readRequest } from "./read-request.ts";

type Answer = Sent<typeof CHECK_RESPONSE>;

const ALLOWED: Answer = { status: { code: GRPC_STATUS.ok } };
const SERVICE_UNAVAILABLE = 503;

/** What the proxy does with a request. Without policy nothing is allowed: there is none until the first time in sync. */
export function authorize(policy: PodPolicyCopy | undefined, request: Received<typeof CHECK_REQUEST>): Answer {
  if (!policy) {
    const status = { code: GRPC_STATUS.unavailable, message: "the pod's policy is not known yet" };
    // So that clients try again, where the proxy would say 403.
    return { status, denied_response: { status: { code: SERVICE_UNAVAILABLE } } };
  }
  const packet = readRequest(request);
  if (!packet) return denied("the addresses of the request cannot be read");
  const { action, because } = policy.verdict(packet);
  return action === "allow" ? ALLOWED : denied(because);
}

function denied(message: string): Answer {
  return { status: { code: GRPC_STATUS.permissionDenied, message } };
}
