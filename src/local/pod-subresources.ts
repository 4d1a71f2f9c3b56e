import { StatusError } from "../api/status.ts";
import type { Call, Reply } from "../apiserver/call.ts";
import { type Core, findStored, objectOf } from "../apiserver/core.ts";
import type { Subresource } from "../apiserver/subresource.ts";
import type { Pod } from "./controllers/workload-types.ts";
import { containerOf, podLogs } from "./pod-logs.ts";
import type { NodeRuntime } from "./runtime/node-runtime.ts";
import { podExec } from "./streams/pod-exec.ts";
import { podPortForward } from "./streams/pod-port-forward.ts";

/** `kubectl logs`, `exec` and `port-forward`: what only the one who runs the pods can answer. */
export function podSubresources(runtime: NodeRuntime): Subresource[] {
  const subresource = (name: string, kind: string, verbs: string[], handle: Subresource["handle"]): Subresource => ({
    group: "",
    plural: "pods",
    name,
    kind: { group: "", version: "v1", kind },
    verbs,
    handle,
  });
  const onRealNodes = (name: string, answer: (pod: Pod, call: Call) => Reply) => async (core: Core, call: Call) => {
    if (runtime.kind === "paper") throw notImplemented(name, runtime);
    return answer(runningPod(core, call), call);
  };
  return [
    subresource("log", "Pod", ["get"], (core, call) => podLogs(core, call, runtime)),
    subresource(
      "exec",
      "PodExecOptions",
      ["get", "create"],
      onRealNodes("exec", (pod, call) => {
        const container = containerOf(pod, call.query.get("container"));
        return podExec(call, (command) => runtime.exec(pod.metadata.uid ?? "", container, command));
      }),
    ),
    subresource(
      "portforward",
      "PodPortForwardOptions",
      ["get", "create"],
      onRealNodes("portforward", (pod, call) =>
        podPortForward(call, (port) => runtime.connect(pod.metadata.uid ?? "", port)),
      ),
    ),
    subresource("attach", "PodAttachOptions", ["get", "create"], async () => {
      throw notImplemented("attach", runtime);
    }),
  ];
}

function runningPod(core: Core, call: Call): Pod {
  const pod = objectOf(call.kind, findStored(core, call.kind, call.namespace, call.name)) as unknown as Pod;
  if (pod.status?.phase === "Running") return pod;
  const phase = pod.status?.phase ?? "Pending";
  throw new StatusError(400, "BadRequest", `pod ${pod.metadata.name} is not running: its phase is ${phase}`);
}

function notImplemented(name: string, runtime: NodeRuntime): StatusError {
  const why =
    runtime.kind === "paper" ? "needs real nodes; the nodes of this cluster are simulated" : "is not served here";
  return new StatusError(501, "NotImplemented", `${name} ${why}`);
}
