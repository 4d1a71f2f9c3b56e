import { bytes, flag, int, text } from "../../kit/grpc/protobuf.ts";

/**
 * What the node's agent says to the sidecar of a pod, over a socket in a volume of that pod: who asks is known by the socket, and is in no message.
 *
 * Both sides name the versions of `content` they speak; the newest of both is used. A version is what a change of meaning needs. What is only added is not:
 * a sidecar passes over fields of messages that it does not know, and takes a rule with a criterion it does not know for one that denies everything.
 */
export const POLICY_SYNC_METHOD = "vendor.policysync.v1.PolicySync/Sync";

/** The CSI driver whose volumes have that socket. */
export const POLICY_SYNC_DRIVER = "csi.vendor.io";

/** The directory that agents' pods have below `flexVolumePath`, named after its maker and itself. Nothing is in it. */
export const FLEX_VOLUME_DIRECTORY = "nodeagent~uds";

/** The versions of `content` that this release speaks. 1: JSON of a `PodPolicyDelta` of src/calc. */
export const POLICY_SYNC_VERSIONS = { oldest: 1, newest: 1 } as const;

const REQUEST = {
  oldest: int(1),
  newest: int(2),
  /** Of the sidecar, for the agent's log. */
  release: text(3),
};

const UPDATE = {
  version: int(1),
  /** What was sent on other connections is void from here on. */
  fresh: flag(2),
  /** With this, the sidecar has all there is. */
  in_sync: flag(3),
  content: bytes(4),
};

export const POLICY_SYNC = [REQUEST, UPDATE] as const;

/** The newest version both speak; undefined where there is none. */
export function commonVersion(theirs: { oldest: number; newest: number }): number | undefined {
  const newest = Math.min(POLICY_SYNC_VERSIONS.newest, theirs.newest);
  return newest >= Math.max(POLICY_SYNC_VERSIONS.oldest, theirs.oldest) ? newest : undefined;
}
