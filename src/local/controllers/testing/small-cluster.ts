import type { KubeObject, ObjectRef, ResourceKind } from "../../../api/object.ts";
import { kubernetesKinds } from "../../../apiserver/kubernetes/kinds.ts";
import { type ApiServer, createApiServer } from "../../../apiserver/server.ts";
import { type Client, createClient } from "../../../cluster/client.ts";
import { isAlreadyExists, isNotFound } from "../../../cluster/failures.ts";
import { NAMESPACES, PODS } from "../../../cluster/kinds.ts";
import { type Clock, systemClock } from "../../../kit/clock.ts";
import { type Kubelet, startKubelet } from "../../runtime/kubelet.ts";
import type { NodeRuntime, NodeSpec } from "../../runtime/node-runtime.ts";
import { simulatedRuntime } from "../../runtime/simulated-runtime.ts";
import { type Controllers, type ControllersOptions, startControllers } from "../start-controllers.ts";
import type { Pod, PodTemplate } from "../workload-types.ts";

/** A whole cluster in this process for the stories of its controllers: API server, controllers, paper nodes. */
export interface SmallCluster {
  client: Client;
  server: ApiServer;
  controllers: Controllers;
  kubelet: Kubelet;
  runtime: NodeRuntime;
  pods(namespace?: string): Promise<Pod[]>;
  /** Waits until the object is as the story says; fails with what it was last. */
  until<T extends KubeObject>(kind: ResourceKind, ref: ObjectRef, is: (object: T) => boolean): Promise<T>;
  untilGone(kind: ResourceKind, ref: ObjectRef): Promise<void>;
  untilPods(is: (pods: Pod[]) => boolean, namespace?: string): Promise<Pod[]>;
  stop(): Promise<void>;
}

export interface SmallClusterOptions extends Omit<ControllersOptions, "transport"> {
  nodes?: number;
  /** Nodes without a CNI configuration, as the kubelet of a new machine finds them. */
  cni?: "none";
}

const GIVE_UP_MS = 15_000;

export async function smallCluster(options: SmallClusterOptions = {}): Promise<SmallCluster> {
  const clock: Clock = options.clock ?? systemClock;
  const server = await createApiServer({ kinds: kubernetesKinds(), now: () => new Date(clock.now()) });
  const transport = server.transport();
  const client = createClient(transport, { userAgent: "story" });
  for (const name of ["default", "kube-system", "kube-node-lease"]) await createNamespace(client, name);
  const runtime = simulatedRuntime({ clock });
  const kubelet = startKubelet({ transport, runtime, clock });
  const controllers = startControllers({ ...options, transport });
  const cniConfigured = options.cni !== "none";
  for (let i = 0; i < (options.nodes ?? 3); i++) await kubelet.addNode({ ...nodeSpec(i), cniConfigured });
  await Promise.all([controllers.synced, kubelet.synced]);

  const pods = async (namespace = "default") => (await client.list<Pod>(PODS, { namespace })).items;
  return {
    client,
    server,
    controllers,
    kubelet,
    runtime,
    pods,
    until: (kind, ref, is) => eventually(() => client.get(kind, ref), is),
    async untilGone(kind, ref) {
      const read = () => client.get(kind, ref).catch(undefinedIfGone);
      await eventually(read, (object) => object === undefined);
    },
    untilPods: (is, namespace) => eventually(() => pods(namespace), is),
    async stop() {
      await Promise.all([controllers.stop(), kubelet.stop()]);
      await runtime.close();
      await server.close();
    },
  };
}

export function nodeSpec(index: number): NodeSpec {
  return {
    name: `node-${index}`,
    internalIPs: [`172.18.${index >> 8}.${index & 255}`],
    podCIDRs: [`10.${244 + (index >> 8)}.${index & 255}.0/24`],
    kernelVersion: "6.8.0",
    osImage: "Ubuntu 24.04 LTS",
    architecture: "amd64",
  };
}

export function template(app: string, annotations: Record<string, string> = {}, image = "web:1"): PodTemplate {
  return {
    metadata: { labels: { app }, annotations },
    spec: { containers: [{ name: "main", image }], terminationGracePeriodSeconds: 0 },
  };
}

async function createNamespace(client: Client, name: string): Promise<void> {
  const namespace: KubeObject = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  await client.create(NAMESPACES, namespace).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}

function undefinedIfGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

async function eventually<T>(read: () => Promise<T>, is: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + GIVE_UP_MS;
  for (;;) {
    const value = await read().catch((error: unknown) => error);
    if (!(value instanceof Error) && is(value as T)) return value as T;
    if (Date.now() > deadline) throw new Error(`still: ${JSON.stringify(value, undefined, 1)}`, { cause: value });
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
}
