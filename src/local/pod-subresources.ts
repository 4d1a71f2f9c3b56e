import { StatusError } from "../api/status.ts";
import type { Subresource } from "../apiserver/subresource.ts";
import { podLogs } from "./pod-logs.ts";
import type { NodeRuntime } from "./runtime/node-runtime.ts";

/** `kubectl logs` and `kubectl exec`: what only the one who runs the pods can answer. */
export function podSubresources(runtime: NodeRuntime): Subresource[] {
  const pod = { group: "", version: "v1", kind: "Pod" };
  return [
    {
      group: "",
      plural: "pods",
      name: "log",
      kind: pod,
      verbs: ["get"],
      handle: (core, call) => podLogs(core, call, runtime),
    },
    ...["exec", "attach", "portforward"].map((name) => ({
      group: "",
      plural: "pods",
      name,
      kind: {
        ...pod,
        kind: `Pod${name === "portforward" ? "PortForward" : name === "exec" ? "Exec" : "Attach"}Options`,
      },
      verbs: ["get", "create"],
      handle: async () => {
        throw new StatusError(
          501,
          "NotImplemented",
          `${name} needs real nodes; this cluster runs on ${runtime.kind} nodes`,
        );
      },
    })),
  ];
}
