import { parseDocument } from "yaml";
import type { Names } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import { serviceProxySettings } from "../../../api/protocol/kube-proxy-mode.ts";
import type { Workload } from "../../../api/workload-objects.ts";
import { CONFIG_MAPS, DAEMON_SETS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import { errors } from "../errors.ts";
import { nameOf, readTarget, type Target, undefinedIfNotFound } from "../objects/target.ts";
import { awaitRollout } from "./wait-for-rollout.ts";

export type SetProxyModeInputs = { mode: "iptables" | "ipvs" };

/** Where the mode was written, the whole text it was in, and the mark that restarted the pods, if there was one. */
type Before = { map: Target; key: string; text: string; mark: string | null };

/** Changes the pod template, so that the pods restart. The same mode is the same annotation: done twice, it restarts once. */
const MARK = "procedures.vendor.io/service-proxy-mode";

/** Writes the mode into the service proxy's settings, all else kept as it is, and restarts its pods, which read it only when they start. */
export const setProxyMode: Action<SetProxyModeInputs, Before> = {
  async needed({ mode }, work) {
    const proxy = await readProxy(work);
    const { items } = await work.client.list<KubeObject>(CONFIG_MAPS, {
      namespace: work.names.namespaces.orchestratorSystem,
      signal: work.signal,
    });
    return serviceProxySettings(proxy, items, work.names).mode !== mode;
  },

  async before(_inputs, work) {
    const proxy = await readProxy(work);
    return { ...(await readSettings(work)), mark: markOf(proxy) ?? null };
  },

  async apply({ mode }, work, { map, key, text }) {
    const document = parseDocument(text);
    document.set("mode", mode);
    await writeSettings(work, map, key, document.toString({ lineWidth: 0 }));
    await markTemplate(work, mode);
  },

  confirm: (_inputs, work) => awaitRollout({ workload: proxyTarget(work.names) }, work),

  async undo(_inputs, work, { map, key, text, mark }) {
    await writeSettings(work, map, key, text);
    await markTemplate(work, mark);
    await awaitRollout({ workload: proxyTarget(work.names) }, work);
  },
};

function proxyTarget({ namespaces, serviceProxy }: Names): Target {
  return {
    apiVersion: "apps/v1",
    kind: DAEMON_SETS.kind,
    namespace: namespaces.orchestratorSystem,
    name: serviceProxy.daemonSet,
  };
}

async function readProxy(work: Work): Promise<Workload> {
  const target = proxyTarget(work.names);
  const proxy = await readTarget(work, target);
  if (!proxy) throw errors.STEP_TARGET_MISSING(nameOf(target));
  return proxy as Workload;
}

function markOf(proxy: Workload): string | undefined {
  return proxy.spec?.template?.metadata?.annotations?.[MARK];
}

/** The two places platforms keep the settings in. */
async function readSettings({ client, names, signal }: Work): Promise<Pick<Before, "map" | "key" | "text">> {
  const namespace = names.namespaces.orchestratorSystem;
  for (const [name, key] of [
    [names.serviceProxy.configMap, "config.conf"],
    ["kube-proxy-config", "config"],
  ] as const) {
    const map = await client.get<KubeObject>(CONFIG_MAPS, { namespace, name }, { signal }).catch(undefinedIfNotFound);
    const text = (map?.["data"] as Record<string, string> | undefined)?.[key];
    if (text !== undefined) return { map: { apiVersion: "v1", kind: CONFIG_MAPS.kind, namespace, name }, key, text };
  }
  throw errors.STEP_PROXY_SETTINGS_ELSEWHERE(names.serviceProxy.configMap);
}

async function writeSettings({ client, signal }: Work, map: Target, key: string, text: string): Promise<void> {
  await client.patch(CONFIG_MAPS, map, { type: "merge", patch: { data: { [key]: text } } }, { signal });
}

async function markTemplate({ client, names, signal }: Work, mark: string | null): Promise<void> {
  const patch = { spec: { template: { metadata: { annotations: { [MARK]: mark } } } } };
  await client.patch(DAEMON_SETS, proxyTarget(names), { type: "merge", patch }, { signal });
}
