import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { INSTALL_METHODS } from "./install-method.ts";
import type { OldRelease } from "./old-release.ts";
import { accountObjects, image, type Place } from "./workload-objects.ts";

const { workloads, groups, endpointMap, manifests } = vendorNames;
type Method = (typeof INSTALL_METHODS)[keyof typeof INSTALL_METHODS];

/** The image whose container never becomes ready: with the etcd datastore node pods were `1/2`, and that was expected. */
const ETCD_CNI_IMAGE = "cni-etcd";
/** For the paper runtime: what containers of older installations do beyond being well. */
export const installedImageRules: readonly (readonly [image: RegExp, behaviour: string])[] = [
  [new RegExp(`/${ETCD_CNI_IMAGE}:`), "never-ready"],
];

/** The node agent as that version ran it, its daemon set last. */
export function nodeAgentObjects(release: OldRelease, method: Method, namespace: string): KubeObject[] {
  const name = method.networking === "overlay" ? workloads.overlayNode : workloads.node;
  const place = { name, namespace };
  return [
    ...accountObjects(place, [
      {
        apiGroups: [""],
        resources: ["pods", "nodes", "namespaces", "serviceaccounts"],
        verbs: ["get", "list", "watch"],
      },
      { apiGroups: [""], resources: ["services", "endpoints", "configmaps"], verbs: ["get", "list", "watch"] },
      { apiGroups: [""], resources: ["pods/status", "nodes/status"], verbs: ["patch", "update"] },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
      { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["list", "watch"] },
      { apiGroups: [groups.stored.group], resources: ["*"], verbs: ["*"] },
    ]),
    daemonSet(place, release, method),
  ];
}

function daemonSet(place: Place, release: OldRelease, method: Method): KubeObject {
  const selector = { "k8s-app": place.name };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { ...place, labels: selector },
    spec: {
      selector: { matchLabels: selector },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels: selector },
        spec: {
          hostNetwork: true,
          priorityClassName: "system-node-critical",
          nodeSelector: { "kubernetes.io/os": "linux" },
          serviceAccountName: place.name,
          terminationGracePeriodSeconds: 0,
          tolerations: [{ operator: "Exists" }],
          containers: containers(release, method),
          volumes: volumes(method),
        },
      },
    },
  };
}

/** The operator ran one container; the plain manifests a second one beside it, for the CNI plugin or the overlay. */
function containers(release: OldRelease, method: Method): object[] {
  const agent = {
    name: workloads.node,
    image: image("node", release),
    env: environment(method),
    envFrom: [{ configMapRef: { name: endpointMap.name, optional: true } }],
    securityContext: { privileged: true },
    readinessProbe: { exec: { command: ["/bin/vendor-node", "-ready"] }, periodSeconds: 10 },
    volumeMounts: mounts(method),
  };
  if (method.by === "operator") return [agent];
  const beside =
    method.datastore === "etcd"
      ? { name: "install-cni", image: image(ETCD_CNI_IMAGE, release) }
      : method.networking === "overlay"
        ? { name: "overlay", image: image("overlay", release) }
        : { name: "install-cni", image: image("cni", release) };
  return [agent, beside];
}

function environment(method: Method): object[] {
  const fromMap = (key: string) => ({ configMapKeyRef: { name: manifests.configMap, key } });
  const onEtcd = [
    { name: "DATASTORE_TYPE", value: "etcd" },
    { name: "ETCD_ENDPOINTS", valueFrom: fromMap(manifests.etcdEndpointsKey) },
  ];
  return [
    ...(method.datastore === "etcd" ? onEtcd : [{ name: "DATASTORE_TYPE", value: "orchestrator" }]),
    { name: "NODENAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
    { name: "CLUSTER_TYPE", value: method.by === "operator" ? "k8s,operator" : "k8s" },
    { name: "DATAPLANE_HEALTHENABLED", value: "true" },
    { name: "DATAPLANE_DEFAULTENDPOINTTOHOSTACTION", value: "Accept" },
    ...(method.networking === "own" ? [{ name: "NETWORKING_BACKEND", value: "vxlan" }] : []),
    ...(method.networking === "foreign" ? [{ name: "USE_POD_CIDR", value: "true" }] : []),
  ];
}

const ETCD_SECRET = "vendor-etcd-secrets";

function volumes(method: Method): object[] {
  const host = (name: string, path: string) => ({ name, hostPath: { path, type: "DirectoryOrCreate" } });
  const secret = { name: "etcd-certs", secret: { secretName: ETCD_SECRET } };
  return [
    host("var-run-vendor", "/var/run/vendor"),
    host("cni-bin-dir", "/opt/cni/bin"),
    ...(method.datastore === "etcd" ? [secret] : []),
  ];
}

function mounts(method: Method): object[] {
  const certificates = { name: "etcd-certs", mountPath: "/vendor-secrets", readOnly: true };
  return [
    { name: "var-run-vendor", mountPath: "/var/run/vendor" },
    ...(method.datastore === "etcd" ? [certificates] : []),
  ];
}

/** The settings the plain manifests kept in one config map; with etcd also where it is and how to speak to it. */
export function manifestSettings(method: Method, namespace: string): KubeObject[] {
  const etcd = {
    [manifests.etcdEndpointsKey]: "https://etcd.internal:2379",
    etcd_ca: "/vendor-secrets/etcd-ca",
    etcd_cert: "/vendor-secrets/etcd-cert",
    etcd_key: "/vendor-secrets/etcd-key",
  };
  const network = {
    name: "vendor",
    cniVersion: "0.3.1",
    plugins: [{ type: method.networking === "foreign" ? "host-local" : "vendor", log_level: "info", mtu: 0 }],
  };
  const settings: KubeObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: manifests.configMap, namespace },
    data: {
      vendor_backend: method.networking === "own" ? "vxlan" : "none",
      veth_mtu: "0",
      cni_network_config: `${JSON.stringify(network, undefined, 2)}\n`,
      ...(method.datastore === "etcd" ? etcd : {}),
    },
  };
  return method.datastore === "etcd" ? [etcdSecret(namespace), settings] : [settings];
}

function etcdSecret(namespace: string): KubeObject {
  const placeholder = (what: string) => Buffer.from(`the ${what} of an etcd that does not exist\n`).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "Opaque",
    metadata: { name: ETCD_SECRET, namespace },
    data: {
      "etcd-ca": placeholder("authority"),
      "etcd-cert": placeholder("certificate"),
      "etcd-key": placeholder("key"),
    },
  };
}
