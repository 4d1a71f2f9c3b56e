import { vendorNames } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import type { IPPool } from "../../api/resources/ip-pool.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import type { Transport } from "../../api/transport.ts";
import type { Admission, Change, UserInfo } from "../../apiserver/call.ts";
import type { Store } from "../../apiserver/storage/store.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { type Controller, runController } from "../../cluster/controller.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../cluster/failures.ts";
import { PODS } from "../../cluster/kinds.ts";
import { keyOf } from "../../cluster/object-cache.ts";
import type { Clock } from "../../kit/clock.ts";
import { keyedQueue } from "../../kit/keyed-queue.ts";
import type { Log } from "../../kit/log.ts";
import type { Node, Pod } from "../controllers/workload-types.ts";
import { isOnEtcd } from "./on-etcd.ts";
import { ourProgram } from "./our-program.ts";
import { type AgentNode, type AgentReport, type AgentSettings, agentReport } from "./simulated-agent-report.ts";

export interface SimulatedAgentsContext {
  store: Store;
  /** Agents write as the service account of their pod, so that the rights they are given are the rights they need. */
  transport(user: UserInfo): Transport;
  kind: ClusterKind;
  clock: Clock;
  log: Log;
}

const { groups, kinds, singleton, variant, workloads } = vendorNames;
const INFORMATION = { ...groups.stored, ...kinds.clusterInformation, namespaced: false };
const DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions";
const SETTINGS = { group: groups.stored.group, plural: kinds.dataplaneConfiguration.plural };
const POOLS = `${groups.stored.group}/${kinds.ipPool.plural}`;
const FOLLOWED: readonly string[] = [SETTINGS.plural, kinds.ipPool.plural];
/** How long agents take to follow a change of their settings. */
const MOMENT_MS = 150;
const PROGRAM = "node";

/**
 * Simulates `vendor node` on all simulated nodes at once: writes the annotations of each agent's pod that the agent would write. It is notified of
 * writes by the server itself and reads what is stored, so a thousand nodes cost it nothing while nothing changes.
 */
export class SimulatedAgents implements Admission {
  /** Key of each agent's pod -> its node. */
  readonly #agents = new Map<string, string>();
  readonly #byNode = new Map<string, Set<string>>();
  readonly #clients = new Map<string, Client>();
  #context: SimulatedAgentsContext | undefined;
  #controller: Controller | undefined;
  #cancelFollow: () => void = () => {};

  start(context: SimulatedAgentsContext): void {
    this.#context = context;
    this.#controller = runController({
      name: "paper-agents",
      log: context.log,
      workers: 8,
      queue: keyedQueue({ clock: context.clock }),
      watches: [],
      reconcile: (key) => this.#speak(key, context),
    });
    for (const stored of context.store.list("/pods")) this.#notePod(JSON.parse(stored.body.toString()) as Pod, false);
  }

  async stop(): Promise<void> {
    this.#cancelFollow();
    await this.#controller?.stop();
  }

  committed({ kind, object, operation }: Change): void {
    if (!this.#context) return;
    if (kind.group === "" && kind.kind === "Pod") this.#notePod(object as Pod, operation === "DELETE");
    else if (kind.group === "" && kind.kind === "Node") this.#wake(this.#byNode.get(object.metadata.name));
    else if (kind.group === SETTINGS.group && FOLLOWED.includes(kind.plural)) this.#follow(this.#context);
  }

  #notePod(pod: Pod, gone: boolean): void {
    const app = pod.metadata.labels?.["k8s-app"] ?? "";
    if (![workloads.node, workloads.overlayNode].includes(app) || !pod.spec?.nodeName) return;
    const key = keyOf(pod);
    const node = pod.spec.nodeName;
    if (gone) {
      this.#agents.delete(key);
      this.#byNode.get(node)?.delete(key);
      return;
    }
    this.#agents.set(key, node);
    this.#byNode.set(node, (this.#byNode.get(node) ?? new Set()).add(key));
    this.#controller?.enqueue(key);
  }

  #follow({ clock }: SimulatedAgentsContext): void {
    this.#cancelFollow();
    this.#cancelFollow = clock.setTimeout(() => this.#wake(this.#agents.keys()), MOMENT_MS);
  }

  #wake(keys: Iterable<string> = []): void {
    for (const key of keys) this.#controller?.enqueue(key);
  }

  async #speak(key: string, context: SimulatedAgentsContext): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    const pod = read<Pod>(context.store, "/pods", namespace, name);
    if (!pod || !runsAgent(pod)) return;
    const node = read<Node>(context.store, "/nodes", "", pod.spec.nodeName ?? "");
    if (!node) return;
    await this.#tellVersion(pod, context);
    const settings = settingsOf(context.store, node.metadata.name);
    const pools = context.store.list(POOLS).map(({ body }) => JSON.parse(body.toString()) as IPPool);
    const word = agentReport(factsOf(node), settings, context.kind, pools);
    if (annotationsOf(pod, word)) return;
    const patch = { metadata: { uid: pod.metadata.uid, annotations: word } };
    try {
      await this.#clientFor(pod, context).patch(PODS, pod.metadata, { type: "merge", patch });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  /** As the agent does when it starts: the version the nodes run. With etcd that is not kept here. */
  async #tellVersion(pod: Pod, context: SimulatedAgentsContext): Promise<void> {
    const agent = pod.spec.containers.map(ourProgram).find((program) => program?.name === PROGRAM);
    if (
      !agent ||
      pod.spec.containers.some(isOnEtcd) ||
      !read(context.store, DEFINITIONS, "", `${INFORMATION.plural}.${INFORMATION.group}`)
    )
      return;
    const { group, plural } = INFORMATION;
    const stored = read<KubeObject>(context.store, `${group}/${plural}`, "", singleton);
    const spec = { vendorVersion: agent.version };
    if ((stored?.["spec"] as typeof spec | undefined)?.vendorVersion === agent.version) return;
    const client = this.#clientFor(pod, context);
    const object = { apiVersion: groupVersion(INFORMATION), kind: INFORMATION.kind, metadata: { name: singleton } };
    try {
      if (stored) await client.patch(INFORMATION, { name: singleton }, { type: "merge", patch: { spec } });
      else await client.create(INFORMATION, { ...object, spec: { ...spec, variant, datastoreReady: true } });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error) && !isAlreadyExists(error)) throw error;
    }
  }

  #clientFor(pod: Pod, { transport, clock }: SimulatedAgentsContext): Client {
    const { namespace = "" } = pod.metadata;
    const account = `system:serviceaccount:${namespace}:${(pod.spec["serviceAccountName"] as string) ?? "default"}`;
    const known = this.#clients.get(account);
    if (known) return known;
    const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"];
    const client = createClient(transport({ name: account, groups }), { userAgent: workloads.node, clock });
    this.#clients.set(account, client);
    return client;
  }
}

/** Agents of older releases said nothing of the kind. */
function runsAgent(pod: Pod): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  const agent = pod.spec.containers.find((container) => ourProgram(container)?.name === PROGRAM);
  const status = pod.status?.containerStatuses?.find(({ name }) => name === agent?.name);
  return status?.state.running !== undefined;
}

function annotationsOf(pod: Pod, word: AgentReport): boolean {
  const has = pod.metadata.annotations ?? {};
  return Object.entries(word).every(([name, value]) => (has[name] ?? null) === value);
}

function factsOf(node: Node): AgentNode {
  const { osImage = "", kernelVersion = "", architecture = "" } = node.status?.nodeInfo ?? {};
  return { annotations: node.metadata.annotations ?? {}, osImage, kernelVersion, architecture };
}

/** The default's fields, each overridden by the node's own. */
function settingsOf(store: Store, node: string): AgentSettings {
  const [common, own] = [singleton, `node.${node}`].map(
    (name) => read<KubeObject>(store, `${SETTINGS.group}/${SETTINGS.plural}`, "", name)?.["spec"],
  );
  const spec = { ...(common ?? {}), ...(own ?? {}) } as {
    bpfEnabled?: boolean;
    cgroupV2Path?: string;
    CgroupV2Path?: string;
  };
  return { bpfEnabled: spec.bpfEnabled ?? false, cgroupV2Path: spec.cgroupV2Path ?? spec.CgroupV2Path };
}

function read<T>(store: Store, resource: string, namespace: string, name: string): T | undefined {
  const stored = store.get(resource, namespace, name);
  return stored && (JSON.parse(stored.body.toString()) as T);
}
