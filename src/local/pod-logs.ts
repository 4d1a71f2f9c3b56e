import { StatusError } from "../api/status.ts";
import type { Call, Reply } from "../apiserver/call.ts";
import { type Core, findStored, objectOf } from "../apiserver/core.ts";
import { isTrue } from "../apiserver/request-info.ts";
import { CodedError } from "../kit/errors.ts";
import type { Pod } from "./controllers/workload-types.ts";
import type { NodeRuntime } from "./runtime/node-runtime.ts";

/** `kubectl logs`: what the node kept of a container's output, in the words and with the choices of Kubernetes. */
export async function podLogs(core: Core, call: Call, runtime: NodeRuntime): Promise<Reply> {
  const pod = objectOf(call.kind, findStored(core, call.kind, call.namespace, call.name)) as unknown as Pod;
  const container = containerOf(pod, call.query.get("container"));
  refuseBeforeStart(pod, container);
  const { query } = call;
  const asked = (name: string) => isTrue(query.get(name) ?? "false");
  const tail = query.get("tailLines");
  const stop = new AbortController();
  const lines = runtime.logs(pod.metadata.uid ?? "", container, {
    follow: asked("follow"),
    previous: asked("previous"),
    signal: stop.signal,
    ...(tail !== null && { tailLines: Number(tail) }),
  });
  const show = shownAs(asked("timestamps"), firstTime(query, core.now()));
  return {
    status: 200,
    headers: { "content-type": "text/plain" },
    stream: (sink) => {
      sink.signal.addEventListener("abort", () => stop.abort(), { once: true });
      const write = (line: string) => {
        const text = show(line);
        return text === undefined || sink.write(text);
      };
      void copy(lines, write).then((problem) => {
        if (problem !== undefined) sink.write(`${problem}\n`);
        sink.end();
      });
    },
  };
}

export function containerOf(pod: Pod, asked: string | null): string {
  const names = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].map(({ name }) => name);
  if (asked !== null) {
    if (names.includes(asked)) return asked;
    throw badRequest(`container ${asked} is not valid for pod ${pod.metadata.name}`);
  }
  const [first, ...others] = pod.spec.containers;
  if (first !== undefined && others.length === 0) return first.name;
  const choices = pod.spec.containers.map(({ name }) => name).join(" ");
  throw badRequest(`a container name must be specified for pod ${pod.metadata.name}, choose one of: [${choices}]`);
}

function refuseBeforeStart(pod: Pod, container: string): void {
  if (!pod.spec.nodeName) throw badRequest(`pod ${pod.metadata.name} does not have a host assigned`);
  const statuses = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])];
  const status = statuses.find(({ name }) => name === container);
  const ranBefore = (status?.restartCount ?? 0) > 0;
  if (!status || (status.state?.waiting && !ranBefore)) {
    const reason = status?.state?.waiting?.reason ?? "ContainerCreating";
    throw badRequest(`container "${container}" in pod "${pod.metadata.name}" is waiting to start: ${reason}`);
  }
}

function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

/** Since when lines are wanted, in milliseconds; always, unless the query says. */
function firstTime(query: URLSearchParams, now: Date): number {
  const seconds = query.get("sinceSeconds");
  if (seconds !== null) return now.getTime() - Number(seconds) * 1000;
  const since = query.get("sinceTime");
  return since === null ? Number.NEGATIVE_INFINITY : Date.parse(since);
}

/** A node keeps each line behind the time it came; who asks sees it only on request. */
function shownAs(timed: boolean, since: number): (line: string) => string | undefined {
  return (line) => {
    const end = line.indexOf(" ");
    if (Date.parse(line.slice(0, end)) < since) return undefined;
    return `${timed ? line : line.slice(end + 1)}\n`;
  };
}

/** What went wrong on the way, a pod that has gone meanwhile say: the head of the answer is already sent. */
async function copy(lines: AsyncIterable<string>, write: (line: string) => boolean): Promise<string | undefined> {
  try {
    for await (const line of lines) if (!write(line)) return undefined;
    return undefined;
  } catch (error) {
    return error instanceof CodedError ? error.message : "the log cannot be read";
  }
}
