import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { Layout } from "./layout.ts";
import { ETCD_SECRET } from "./manifest-settings.ts";
import type { OldRelease } from "./old-release.ts";
import { accountObjects, image, type Place } from "./workload-objects.ts";

const { workloads, groups, endpointMap, manifests } = vendorNames;

/** The image whose container never becomes ready: with the etcd datastore node pods were `1/2`, and that was expected. */
export const ETCD_CNI_IMAGE = "cni-etcd";

/** The node agent as that version ran it, its daemon set last. */
export function nodeAgentObjects(release: OldRelease, layout: Layout, namespace: string): KubeObject[] {
  const name = layout.networking === "overlay" ? workloads.overlayNode : workloads.node;
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
    daemonSet(place, release, layout),
  ];
}

function daemonSet(place: Place, release: OldRelease, layout: Layout): KubeObject {
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
          containers: containers(release, layout),
          volumes: volumes(layout),
        },
      },
    },
  };
}

/** The operator ran one container; the plain manifests a second one, for the CNI plugin or the overlay. */
function containers(release: OldRelease, layout: Layout): object[] {
  const agent = {
    name: workloads.node,
    image: image("node", release),
    env: environment(layout),
    envFrom: [{ configMapRef: { name: endpointMap.name, optional: true } }],
    securityContext: { privileged: true },
    readinessProbe: { exec: { command: ["/bin/vendor-node", "-ready"] }, periodSeconds: 10 },
    volumeMounts: mounts(layout),
  };
  if (layout.by === "operator") return [agent];
  const beside =
    layout.datastore === "etcd"
      ? { name: "install-cni", image: image(ETCD_CNI_IMAGE, release) }
      : layout.networking === "overlay"
        ? { name: "overlay", image: image("overlay", release) }
        : { name: "install-cni", image: image("cni", release) };
  return [agent, beside];
}

function environment(layout: Layout): object[] {
  const fromMap = (key: string) => ({ configMapKeyRef: { name: manifests.configMap, key } });
  const onEtcd = [
    { name: "DATASTORE_TYPE", value: "etcd" },
    { name: "ETCD_ENDPOINTS", valueFrom: fromMap(manifests.etcdEndpointsKey) },
  ];
  return [
    ...(layout.datastore === "etcd" ? onEtcd : [{ name: "DATASTORE_TYPE", value: "orchestrator" }]),
    { name: "NODENAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
    { name: "CLUSTER_TYPE", value: layout.by === "operator" ? "k8s,operator" : "k8s" },
    { name: "DATAPLANE_HEALTHENABLED", value: "true" },
    { name: "DATAPLANE_DEFAULTENDPOINTTOHOSTACTION", value: "Accept" },
    ...(layout.networking === "own" ? [{ name: "NETWORKING_BACKEND", value: "vxlan" }] : []),
    ...(layout.networking === "foreign" ? [{ name: "USE_POD_CIDR", value: "true" }] : []),
  ];
}

function volumes(layout: Layout): object[] {
  const host = (name: string, path: string) => ({ name, hostPath: { path, type: "DirectoryOrCreate" } });
  const secret = { name: "etcd-certs", secret: { secretName: ETCD_SECRET } };
  return [
    host("var-run-vendor", "/var/run/vendor"),
    host("cni-bin-dir", "/opt/cni/bin"),
    ...(layout.datastore === "etcd" ? [secret] : []),
  ];
}

function mounts(layout: Layout): object[] {
  const certificates = { name: "etcd-certs", mountPath: "/vendor-secrets", readOnly: true };
  return [
    { name: "var-run-vendor", mountPath: "/var/run/vendor" },
    ...(layout.datastore === "etcd" ? [certificates] : []),
  ];
}
