import { StatusError } from "../api/status.ts";
import type { Call, Reply } from "../apiserver/call.ts";
import { type Core, findStored, objectOf } from "../apiserver/core.ts";
import { isTrue } from "../apiserver/request-info.ts";
import type { Subresource } from "../apiserver/subresource.ts";
import { CodedError } from "../kit/errors.ts";
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
      handle: (core, call) => logs(core, call, runtime),
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

async function logs(core: Core, call: Call, runtime: NodeRuntime): Promise<Reply> {
  const pod = objectOf(call.kind, findStored(core, call.kind, call.namespace, call.name));
  const containers = ((pod["spec"] as { containers?: { name: string }[] }).containers ?? []).map(({ name }) => name);
  const container = call.query.get("container") ?? (containers.length === 1 ? containers[0] : undefined);
  if (container === undefined) {
    const message = `a container name must be specified for pod ${call.name}, choose one of: [${containers.join(" ")}]`;
    throw new StatusError(400, "BadRequest", message);
  }
  const tail = call.query.get("tailLines");
  const stop = new AbortController();
  const lines = runtime.logs(pod.metadata.uid ?? "", container, {
    follow: isTrue(call.query.get("follow") ?? "false"),
    previous: isTrue(call.query.get("previous") ?? "false"),
    signal: stop.signal,
    ...(tail !== null && { tailLines: Number(tail) }),
  });
  return {
    status: 200,
    headers: { "content-type": "text/plain" },
    stream: (sink) => {
      sink.signal.addEventListener("abort", () => stop.abort(), { once: true });
      void copy(lines, sink.write).finally(() => sink.end());
    },
  };
}

/** A pod that has gone meanwhile ends its log with the reason: the head of the answer is already sent. */
async function copy(lines: AsyncIterable<string>, write: (text: string) => boolean): Promise<void> {
  try {
    for await (const line of lines) if (!write(`${line}\n`)) return;
  } catch (error) {
    if (error instanceof CodedError) write(`${error.message}\n`);
  }
}
