import { stringify } from "yaml";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { runController, watching } from "../../cluster/controller.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { createInformer } from "../../cluster/informer.ts";
import { CONFIG_MAPS, DAEMON_SETS } from "../../cluster/kinds.ts";
import { CodedError } from "../../kit/errors.ts";
import { keyedQueue } from "../../kit/keyed-queue.ts";
import type { Behaviour } from "../platform-profile.ts";
import { type ClusterConfiguration, readClusterConfiguration } from "./cluster-configuration.ts";
import { putObject } from "./put-object.ts";
import { serviceProxyObjects } from "./service-proxy-add-on.ts";
import { KUBE_SYSTEM } from "./system-namespaces.ts";

export const CONFIGURATION = { name: "cluster-configuration", namespace: KUBE_SYSTEM } as const;
export const CONFIGURATION_KEY = "cluster.yaml";
const STATUS_KEY = "status.yaml";
/** Requests a rollout, by any value it did not have before: our replacement for the tool's `update cluster`. */
const REQUESTED = "local.vendor.io/rollout";
/** The last rollout that came to its end, well or not. */
const ROLLED_OUT = "local.vendor.io/rolled-out";
const LEAVING_MS = 200;

const { daemonSet, configMap } = vendorNames.serviceProxy;

/** Edits to the configuration change nothing by themselves; a rollout makes the cluster what the configuration says then. */
export const clusterRollout: Behaviour = {
  name: "cluster-rollout",
  start({ client, clock, log }) {
    const configuration = createInformer<KubeObject>(client, CONFIG_MAPS, {
      namespace: KUBE_SYSTEM,
      fieldSelector: `metadata.name=${CONFIGURATION.name}`,
      clock,
    });
    const controller = runController({
      name: clusterRollout.name,
      watches: [watching(configuration, ({ metadata }) => [`${metadata.namespace}/${metadata.name}`])],
      reconcile: async (key) => {
        const kept = configuration.get(key);
        const wanted = kept?.metadata.annotations?.[REQUESTED];
        if (!kept || wanted === undefined || wanted === kept.metadata.annotations?.[ROLLED_OUT]) return undefined;
        const outcome = await rollOut(client, kept);
        if (outcome === "again") return { requeueAfterMs: LEAVING_MS };
        await report(client, wanted, outcome);
        log.info({ rollout: wanted, ...outcome }, "rolled the cluster configuration out");
        return undefined;
      },
      queue: keyedQueue({ clock }),
      log,
    });
    return {
      async stop() {
        await controller.stop();
        await configuration.stop();
      },
    };
  },
};

type Outcome = { phase: "Completed"; kubeProxy: string } | { phase: "Failed"; message: string };

async function rollOut(client: Client, kept: KubeObject): Promise<Outcome | "again"> {
  const text = (kept["data"] as Record<string, string> | undefined)?.[CONFIGURATION_KEY] ?? "";
  let wanted: ClusterConfiguration;
  try {
    wanted = readClusterConfiguration(text);
  } catch (error) {
    if (error instanceof CodedError) return { phase: "Failed", message: error.message };
    throw error;
  }
  if (wanted.proxy === "none") {
    await removeProxy(client);
    return { phase: "Completed", kubeProxy: "disabled" };
  }
  return (await putProxy(client, wanted)) ? { phase: "Completed", kubeProxy: wanted.proxy } : "again";
}

/** Answers whether everything is as it should be; what is still being deleted has to go first. */
async function putProxy(client: Client, configuration: ClusterConfiguration): Promise<boolean> {
  for (const object of proxyObjects(configuration)) {
    if ((await putObject(client, object)).did === "leaving") return false;
  }
  return true;
}

/** The roles stay: without the account's pods they grant nothing, and a rollback is shorter. */
async function removeProxy(client: Client): Promise<void> {
  const ignoreGone = (error: unknown) => {
    if (!isNotFound(error)) throw error;
  };
  const here = { namespace: KUBE_SYSTEM };
  await client.delete(DAEMON_SETS, { name: daemonSet, ...here }, { propagationPolicy: "Background" }).catch(ignoreGone);
  await client.delete(CONFIG_MAPS, { name: configMap, ...here }).catch(ignoreGone);
}

export function proxyObjects({ proxy, server, podCidr }: ClusterConfiguration): KubeObject[] {
  if (proxy === "none") return [];
  const settings = { in: "configMap", name: configMap, key: "config.conf" } as const;
  return serviceProxyObjects({ mode: proxy, server, clusterCidr: podCidr, settings });
}

async function report(client: Client, rollout: string, outcome: Outcome): Promise<void> {
  const patch = {
    metadata: { annotations: { [ROLLED_OUT]: rollout } },
    data: { [STATUS_KEY]: stringify({ rollout, ...outcome }) },
  };
  await client.patch(CONFIG_MAPS, CONFIGURATION, { type: "merge", patch });
}
