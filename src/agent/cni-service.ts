import { CNI_CODES, CNI_COMMANDS, type CniAnswer, type CniError, type CniRequest } from "../api/protocol/cni.ts";
import { StatusError } from "../api/status.ts";
import { isUnreachable } from "../cluster/failures.ts";
import type { Clock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import type { Log } from "../kit/log.ts";
import type { AgentMetrics } from "./agent-metrics.ts";
import { errors } from "./errors.ts";
import type { PodNetwork } from "./pods/pod-network.ts";
import type { RefusedPods } from "./refused-pods.ts";

export interface CniServiceOptions {
  pods: PodNetwork;
  refused: RefusedPods;
  /** Why no pod can be connected now; undefined: pods can. */
  notReady(): string | undefined;
  metrics: AgentMetrics;
  clock: Clock;
  log: Log;
}

/** Answers the plugin: one call, one answer, and every failure with the code a runtime acts on. */
export function cniService(options: CniServiceOptions): (question: unknown) => Promise<CniAnswer> {
  const { metrics, clock, log, refused } = options;
  return async (question) => {
    if (!isRequest(question)) {
      return { error: { code: CNI_CODES.invalidEnvironment, msg: "this is not a request of the plugin" } };
    }
    const request = question;
    const { command, containerId, args } = request;
    const began = clock.now();
    const pod = args?.["K8S_POD_NAME"] && `${args["K8S_POD_NAMESPACE"]}/${args["K8S_POD_NAME"]}`;
    let answer: CniAnswer;
    try {
      answer = await act(options, request);
      // A runtime cleans up by DEL after each ADD that failed: only an ADD says that the pod is connected.
      if (pod && command === "ADD") refused.connected(pod);
    } catch (error) {
      const problem = problemOf(error);
      answer = { error: problem };
      if (pod && command === "ADD") refused.failed(pod, error);
      log.warn({ command, containerId, pod, code: problem.code, error }, "the plugin's call failed");
    }
    const took = clock.now() - began;
    metrics.cniSeconds.observe(took / 1000, { command, result: "error" in answer ? "error" : "ok" });
    if (!("error" in answer)) log.debug({ command, containerId, pod, ms: took }, "answered the plugin");
    return answer;
  };
}

async function act({ pods, notReady }: CniServiceOptions, request: CniRequest): Promise<CniAnswer> {
  const missing = notReady();
  switch (request.command) {
    case "ADD":
      if (missing) throw errors.AGENT_NOT_READY(missing);
      return { result: await pods.add(request) };
    case "DEL":
      await pods.remove(request);
      return {};
    case "CHECK":
      pods.check(request);
      return {};
    case "GC": {
      const { config } = request;
      // Without a list of what is valid, nothing is known to be invalid.
      const valid = config["cni.dev/valid-attachments"] ?? config["cni.dev/attachments"];
      if (valid) await pods.removeOthers(valid);
      return {};
    }
    case "STATUS":
      // Single objects that are not in effect are no reason: a runtime takes any error for "start no pod here".
      return missing ? { error: { code: CNI_CODES.notAvailable, msg: missing } } : {};
    default:
      return { error: { code: CNI_CODES.invalidEnvironment, msg: `command ${String(request.command)} is unknown` } };
  }
}

/** The socket is root's; a request of an older or a broken plugin is answered all the same, and not acted on. */
function isRequest(question: unknown): question is CniRequest {
  if (typeof question !== "object" || question === null) return false;
  const { command, containerId, netns, ifname, args, config } = question as Record<string, unknown>;
  const texts = [containerId, netns, ifname].every((text) => text === undefined || typeof text === "string");
  const maps = [args, config].every((map) => map === undefined || (typeof map === "object" && map !== null));
  return (CNI_COMMANDS as readonly unknown[]).includes(command) && texts && maps;
}

/** Worth another try by itself: nothing about the pod is wrong. */
const LATER = new Set(["AGENT_NOT_READY", "POD_POLICY_LATE", "IPAM_BUSY"]);

function problemOf(error: unknown): CniError {
  const msg = error instanceof Error ? error.message : String(error);
  if (error instanceof CodedError) {
    const code = LATER.has(error.code) || isUnreachable(error) ? CNI_CODES.tryAgainLater : codeOf(error.code);
    return { code, msg, details: error.fix ? `[${error.code}] ${error.fix}` : `[${error.code}]` };
  }
  const code = error instanceof StatusError && error.code >= 429 ? CNI_CODES.tryAgainLater : CNI_CODES.failed;
  return { code, msg };
}

function codeOf(code: string): number {
  if (code === "POD_UNKNOWN") return CNI_CODES.containerUnknown;
  return code === "POD_UNNAMED" ? CNI_CODES.invalidEnvironment : CNI_CODES.failed;
}
