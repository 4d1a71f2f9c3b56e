import type { KubeObject } from "../../api/object.ts";
import { POLICY_SYNC_DRIVER } from "../../api/protocol/policy-sync.ts";

/**
 * Lets pods have a volume with the socket of the node's agent. It is rendered whether sidecars are served or not: an object that comes and goes with a
 * setting would take running pods' volumes along.
 */
export function policySyncDriver(): KubeObject {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "CSIDriver",
    metadata: {
      name: POLICY_SYNC_DRIVER,
      // Any pod may have the volume, also where Pod Security is `restricted`: it shows a pod only its own policy.
      labels: { "security.kubernetes.io/csi-ephemeral-volume-profile": "restricted" },
    },
    spec: {
      attachRequired: false,
      podInfoOnMount: false,
      fsGroupPolicy: "None",
      volumeLifecycleModes: ["Ephemeral"],
    },
  };
}
