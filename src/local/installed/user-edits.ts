import { vendorNames } from "../../api/names.ts";
import type { ObjectRef, ResourceKind } from "../../api/object.ts";
import type { Patch } from "../../cluster/client.ts";
import { CONFIG_MAPS, DAEMON_SETS } from "../../cluster/kinds.ts";
import type { INSTALL_METHODS } from "./install-method.ts";

export interface UserEdit {
  kind: ResourceKind;
  ref: ObjectRef;
  patch: Patch;
}

const { workloads, manifests, groups, kinds, singleton } = vendorNames;
const OWNED_BY = { "example.com/owned-by": "platform-team" };

/** What a user changed by hand after the installation, and must find again after an upgrade. */
export function userEdits(
  method: (typeof INSTALL_METHODS)[keyof typeof INSTALL_METHODS],
  namespace: string,
): UserEdit[] {
  if (method.by === "operator") {
    const kind = { ...groups.operator, ...kinds.installation, namespaced: false };
    const patch = { metadata: { annotations: OWNED_BY }, spec: { nodeMetricsPort: 9091 } };
    return [{ kind, ref: { name: singleton }, patch: { type: "merge", patch } }];
  }
  const name = method.networking === "overlay" ? workloads.overlayNode : workloads.node;
  const container = { name: workloads.node, env: [{ name: "DATAPLANE_LOGSEVERITYSCREEN", value: "Warning" }] };
  const agent = { metadata: { annotations: OWNED_BY }, spec: { template: { spec: { containers: [container] } } } };
  return [
    { kind: DAEMON_SETS, ref: { name, namespace }, patch: { type: "strategic", patch: agent } },
    {
      kind: CONFIG_MAPS,
      ref: { name: manifests.configMap, namespace },
      patch: { type: "merge", patch: { data: { veth_mtu: "1440" } } },
    },
  ];
}
