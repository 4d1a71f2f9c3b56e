import {
  CNI_CODES,
  CNI_COMMANDS,
  CNI_VERSIONS,
  type CniAnswer,
  type CniConfig,
  type CniDeletion,
  type CniError,
  type CniRequest,
} from "../api/protocol/cni.ts";
import type { PluginEnv } from "./config.ts";
import { resultForm } from "./result-form.ts";

/** What the plugin prints, and exits with. */
export interface PluginEnd {
  output: string;
  exitCode: 0 | 1;
}

export type RequestAgent = (socket: string, request: CniRequest, timeoutMs: number) => Promise<unknown>;

/** Leaves a note for the next agent, next to the socket where it will listen: an interface whose DEL found no agent. */
type NoteDeletion = (socket: string, deletion: CniDeletion) => void;

const SOCKET = "/var/run/vendor/cni.sock";
/** Longer than the agent itself waits for anything: its answer says more than our giving up. */
const PATIENCE_MS = 90_000;
const STATUS_MS = 10_000;

/** One call, from what the runtime said to what it reads. Everything is done by the node's agent. */
export async function runPlugin(
  env: PluginEnv,
  input: string,
  ask: RequestAgent,
  note: NoteDeletion,
): Promise<PluginEnd> {
  try {
    if (env.command === "VERSION") {
      const asked = parseConfig(input || "{}").cniVersion ?? CNI_VERSIONS.at(-1);
      return succeed({ cniVersion: asked, supportedVersions: CNI_VERSIONS });
    }
    const config = checkedConfig(input);
    const request = requestOf(env, config);
    if (config.type === "loopback") return loopback(request);
    return await answered(request, ask, note);
  } catch (error) {
    if (error instanceof Refusal) return fail(error.problem, error.cniVersion);
    // A runtime reads nothing but JSON: a defect of ours is one answer, too.
    const details = error instanceof Error ? error.message : String(error);
    return fail({ code: CNI_CODES.failed, msg: "the plugin failed", details }, CNI_VERSIONS.at(-1) as string);
  }
}

/** The agent sets lo up when it connects the pod: this call only names it to the runtime. */
function loopback({ command, netns, config }: CniRequest): PluginEnd {
  if (command !== "ADD") return { output: "", exitCode: 0 };
  const interfaces = [{ name: "lo", mac: "00:00:00:00:00:00", sandbox: netns }];
  const ips = [{ address: "127.0.0.1/8", interface: 0 }];
  return succeed(resultForm({ interfaces, ips, routes: [] }, config.cniVersion));
}

async function answered(
  request: CniRequest,
  ask: RequestAgent,
  note: NoteDeletion,
  isNoted = false,
): Promise<PluginEnd> {
  const { command, config } = request;
  const socket = config.socket || SOCKET;
  const patience = PATIENCE_MS + (config.policy_setup_timeout_seconds ?? 0) * 1000;
  let answer: CniAnswer;
  try {
    answer = (await ask(socket, request, command === "STATUS" ? STATUS_MS : patience)) as CniAnswer;
  } catch (error) {
    if (command === "DEL" && isWithoutAgent(error)) {
      // A pod must be deletable without an agent, also after the service was removed. The next agent, if there is one, carries the DEL out.
      if (isNoted) return { output: "", exitCode: 0 };
      note(socket, { containerId: request.containerId, ifname: request.ifname });
      // Requested once more: an agent that has started since then may have read the notes before this one was written.
      return await answered(request, ask, note, true);
    }
    // The agent is down: "try again later" is all a runtime can act on, but for STATUS it is the answer itself.
    const code = command === "STATUS" ? CNI_CODES.notAvailable : CNI_CODES.tryAgainLater;
    const details = error instanceof Error ? error.message : String(error);
    throw new Refusal({ code, msg: "the node's agent does not answer", details }, config.cniVersion);
  }
  if (typeof answer !== "object" || answer === null) {
    const problem = { code: CNI_CODES.failed, msg: "the node's agent gave an answer that cannot be read" };
    throw new Refusal(problem, config.cniVersion);
  }
  if ("error" in answer) throw new Refusal(answer.error, config.cniVersion);
  return command === "ADD" && answer.result
    ? succeed(resultForm(answer.result, config.cniVersion))
    : { output: "", exitCode: 0 };
}

/** No process listens, in contrast to one that is slow or answers wrongly. */
function isWithoutAgent(error: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED", "ENOTDIR"].includes((error as { code?: string } | undefined)?.code ?? "");
}

function checkedConfig(input: string): CniConfig {
  const config = parseConfig(input);
  const cniVersion = config.cniVersion ?? "0.1.0";
  if (!(CNI_VERSIONS as readonly string[]).includes(cniVersion)) {
    throw new Refusal({
      code: CNI_CODES.incompatibleVersion,
      msg: `CNI version ${cniVersion} is not supported`,
      details: `use one of ${CNI_VERSIONS.join(", ")}`,
    });
  }
  if (typeof config.name !== "string" || typeof config.type !== "string") {
    const problem = { code: CNI_CODES.invalidConfiguration, msg: "the network configuration has no name or no type" };
    throw new Refusal(problem, cniVersion);
  }
  return config as CniConfig;
}

function parseConfig(input: string): Partial<CniConfig> {
  try {
    const config: unknown = JSON.parse(input);
    if (typeof config === "object" && config !== null && !Array.isArray(config)) return config;
  } catch {
    // Said below.
  }
  throw new Refusal({ code: CNI_CODES.decodingFailure, msg: "standard input is not a network configuration in JSON" });
}

/** What a command cannot do without. */
const NEEDS: Partial<Record<string, readonly (keyof PluginEnv)[]>> = {
  ADD: ["containerId", "netns", "ifname"],
  CHECK: ["containerId", "netns", "ifname"],
  DEL: ["containerId", "ifname"],
};

const VARIABLES: Record<keyof PluginEnv, string> = {
  command: "CNI_COMMAND",
  containerId: "CNI_CONTAINERID",
  netns: "CNI_NETNS",
  ifname: "CNI_IFNAME",
  args: "CNI_ARGS",
};

function requestOf(env: PluginEnv, config: CniConfig): CniRequest {
  const refuse = (msg: string) => new Refusal({ code: CNI_CODES.invalidEnvironment, msg }, config.cniVersion);
  const command = CNI_COMMANDS.find((known) => known === env.command);
  if (!command || command === "VERSION") throw refuse(`CNI_COMMAND "${env.command}" is unknown`);
  for (const need of NEEDS[command] ?? []) if (!env[need]) throw refuse(`${VARIABLES[need]} is not set`);
  if (env.containerId && !/^[A-Za-z0-9][A-Za-z0-9_.-]{0,250}$/.test(env.containerId)) {
    throw refuse(`CNI_CONTAINERID "${env.containerId}" is not an identifier`);
  }
  if (env.ifname && !/^[^\s/:]{1,15}$/.test(env.ifname)) {
    throw refuse(`CNI_IFNAME "${env.ifname}" is not a name for an interface`);
  }
  const { containerId, netns, ifname } = env;
  return { command, containerId, netns, ifname, args: parseArgs(env.args), config };
}

function parseArgs(text: string): Record<string, string> {
  const pairs = text.split(";").flatMap((pair) => {
    const at = pair.indexOf("=");
    return at > 0 ? [[pair.slice(0, at), pair.slice(at + 1)] as const] : [];
  });
  return Object.fromEntries(pairs);
}

class Refusal extends Error {
  readonly problem: CniError;
  readonly cniVersion: string;

  constructor(problem: CniError, cniVersion: string = CNI_VERSIONS.at(-1) as string) {
    super(problem.msg);
    this.problem = problem;
    this.cniVersion = cniVersion;
  }
}

function succeed(value: object): PluginEnd {
  return { output: `${JSON.stringify(value)}\n`, exitCode: 0 };
}

function fail(problem: CniError, cniVersion: string): PluginEnd {
  return { output: `${JSON.stringify({ cniVersion, ...problem })}\n`, exitCode: 1 };
}
