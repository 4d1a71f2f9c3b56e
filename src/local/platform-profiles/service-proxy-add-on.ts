import { stringify } from "yaml";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { PlatformProfile, PlatformProfileOptions, ProxyChoice, ProxyMode } from "../platform-profile.ts";
import { errors } from "./errors.ts";
import { clusterRole, clusterRoleBinding } from "./rbac-objects.ts";
import { KUBE_SYSTEM } from "./system-namespaces.ts";

const { daemonSet, configMap } = vendorNames.serviceProxy;
export const KUBERNETES_VERSION = "v1.36.4";

/** How a platform runs the service proxy. */
export interface ServiceProxyAddOn {
  mode: ProxyMode;
  /** URL of the API server, as in kube-proxy's kubeconfig. */
  server: string;
  clusterCidr: string;
  /** Where the platform writes the proxy's settings: a config map's key, or flags on its command line. */
  settings: { in: "configMap"; name: string; key: string } | { in: "flags" };
  labels?: Record<string, string>;
}

/** What was asked for, or the platform's own choice; refused where the platform has no such thing. */
export function proxyOf(
  personality: Pick<PlatformProfile, "kind" | "proxies">,
  options: PlatformProfileOptions,
): ProxyChoice {
  const { kind, proxies } = personality;
  const asked = options.proxy ?? proxies[0];
  if (!proxies.includes(asked)) throw errors.PROXY_NOT_OFFERED(kind, asked, proxies.join(", "));
  return asked;
}

/** Everything the service proxy consists of, its daemon set last. */
export function serviceProxyObjects(addOn: ServiceProxyAddOn): KubeObject[] {
  const metadata = { name: daemonSet, namespace: KUBE_SYSTEM, labels: labelsOf(addOn) };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    clusterRole("system:node-proxier", [
      { apiGroups: [""], resources: ["endpoints", "services", "nodes"], verbs: ["get", "list", "watch"] },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
      { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["create", "patch", "update"] },
    ]),
    clusterRoleBinding("system:node-proxier", { name: daemonSet, namespace: KUBE_SYSTEM }),
    ...settingsObjects(addOn),
    serviceProxyDaemonSet(addOn),
  ];
}

function settingsObjects(addOn: ServiceProxyAddOn): KubeObject[] {
  if (addOn.settings.in === "flags") return [];
  const { name, key } = addOn.settings;
  const labels = labelsOf(addOn);
  const settings = configMapObject(name, labels, { [key]: proxyConfiguration(addOn) });
  const kubeconfig = { "kubeconfig.conf": proxyKubeconfig(addOn.server) };
  if (name === configMap) return [{ ...settings, data: { ...(settings["data"] as object), ...kubeconfig } }];
  return [settings, configMapObject(configMap, labels, kubeconfig)];
}

function configMapObject(name: string, labels: Record<string, string>, data: Record<string, string>): KubeObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: KUBE_SYSTEM, labels }, data };
}

function labelsOf({ labels }: ServiceProxyAddOn): Record<string, string> {
  return { "k8s-app": daemonSet, ...labels };
}

function proxyConfiguration({ mode, clusterCidr }: ServiceProxyAddOn): string {
  return stringify({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    bindAddress: "0.0.0.0",
    clientConnection: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" },
    clusterCIDR: clusterCidr,
    healthzBindAddress: "0.0.0.0:10256",
    metricsBindAddress: "127.0.0.1:10249",
    mode,
    ...(mode === "ipvs" ? { ipvs: { scheduler: "rr", strictARP: false } } : {}),
  });
}

function proxyKubeconfig(server: string): string {
  const account = "/var/run/secrets/kubernetes.io/serviceaccount";
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default", cluster: { "certificate-authority": `${account}/ca.crt`, server } }],
    users: [{ name: "default", user: { tokenFile: `${account}/token` } }],
    contexts: [{ name: "default", context: { cluster: "default", user: "default", namespace: "default" } }],
    "current-context": "default",
  });
}

function serviceProxyDaemonSet(addOn: ServiceProxyAddOn): KubeObject {
  const selector = { "k8s-app": daemonSet };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: daemonSet, namespace: KUBE_SYSTEM, labels: labelsOf(addOn) },
    spec: {
      selector: { matchLabels: selector },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
      template: { metadata: { labels: selector }, spec: podSpec(addOn) },
    },
  };
}

function podSpec(addOn: ServiceProxyAddOn): object {
  const { command, volumes, mounts } = runningWith(addOn);
  return {
    hostNetwork: true,
    priorityClassName: "system-node-critical",
    serviceAccountName: daemonSet,
    nodeSelector: { "kubernetes.io/os": "linux" },
    tolerations: [{ operator: "Exists" }],
    containers: [
      {
        name: daemonSet,
        image: `registry.local/${daemonSet}:${KUBERNETES_VERSION}`,
        command,
        securityContext: { privileged: true },
        volumeMounts: [...mounts, { name: "xtables-lock", mountPath: "/run/xtables.lock" }],
      },
    ],
    volumes: [...volumes, { name: "xtables-lock", hostPath: { path: "/run/xtables.lock", type: "FileOrCreate" } }],
  };
}

function runningWith({ settings, mode, clusterCidr }: ServiceProxyAddOn) {
  if (settings.in === "flags") {
    const flags = [
      "--kubeconfig=/var/lib/kubelet/kubeconfig",
      `--cluster-cidr=${clusterCidr}`,
      `--proxy-mode=${mode}`,
      "--metrics-bind-address=0.0.0.0:10249",
    ];
    const kubelet = { name: "kubeconfig", hostPath: { path: "/var/lib/kubelet/kubeconfig", type: "File" } };
    const mount = { name: "kubeconfig", mountPath: "/var/lib/kubelet/kubeconfig", readOnly: true };
    return { command: [`/usr/local/bin/${daemonSet}`, ...flags], volumes: [kubelet], mounts: [mount] };
  }
  const sources = [...new Set([settings.name, configMap])].map((name) => ({ configMap: { name } }));
  return {
    command: [`/usr/local/bin/${daemonSet}`, `--config=/var/lib/kube-proxy/${settings.key}`],
    volumes: [{ name: configMap, projected: { sources } }],
    mounts: [{ name: configMap, mountPath: "/var/lib/kube-proxy", readOnly: true }],
  };
}
