import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { KeyPair } from "../../kit/x509.ts";
import type { OldRelease } from "../../releases/old-release.ts";
import { accountObjects, deployment, type Place } from "../../releases/workload-objects.ts";

const { workloads, namespaces, groups } = vendorNames;

/** The aggregated v3 API in the namespace it had before v3.31, with the key pair its operator made for it. */
export function apiServerObjects(release: OldRelease, pair: KeyPair): KubeObject[] {
  const place = { name: workloads.apiServer, namespace: namespaces.apiServerBeforeV331 };
  const certificates = { name: `${place.name}-certs`, namespace: place.namespace };
  const service = { name: "vendor-api", namespace: place.namespace };
  const container = {
    // It did what `vendor apiserver` does: the embedded cluster runs that instead, under its version.
    command: ["vendor", "apiserver"],
    ports: [{ name: "https", containerPort: 5443 }],
    volumeMounts: [{ name: "certs", mountPath: "/code/apiserver.local.config/certificates", readOnly: true }],
  };
  const pod = { volumes: [{ name: "certs", secret: { secretName: certificates.name } }] };
  return [
    ...accountObjects(place, [
      { apiGroups: [groups.stored.group], resources: ["*"], verbs: ["*"] },
      { apiGroups: [""], resources: ["namespaces", "nodes"], verbs: ["get", "list", "watch"] },
    ]),
    ...delegation(place),
    secretWith(certificates, pair),
    deployment(place, { release, replicas: 2, container, pod }),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: service,
      spec: { selector: { "k8s-app": place.name }, ports: [{ name: "https", port: 443, targetPort: 5443 }] },
    },
    announcement(service),
  ];
}

/** Who a caller is and what it may do was asked of the orchestrator. */
function delegation(place: Place): KubeObject[] {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const apiGroup = "rbac.authorization.k8s.io";
  const subjects = [{ kind: "ServiceAccount", ...place }];
  return [
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name: `${place.name}-auth-delegator` },
      roleRef: { apiGroup, kind: "ClusterRole", name: "system:auth-delegator" },
      subjects,
    },
    {
      apiVersion,
      kind: "RoleBinding",
      metadata: { name: `${place.name}-auth-reader`, namespace: namespaces.orchestratorSystem },
      roleRef: { apiGroup, kind: "Role", name: "extension-apiserver-authentication-reader" },
      subjects,
    },
  ];
}

function secretWith(metadata: Place, { certificate, key }: KeyPair): KubeObject {
  const data = {
    "tls.crt": Buffer.from(certificate).toString("base64"),
    "tls.key": Buffer.from(key).toString("base64"),
  };
  return { apiVersion: "v1", kind: "Secret", type: "kubernetes.io/tls", metadata, data };
}

function announcement(service: Place): KubeObject {
  const { group, version } = groups.served;
  return {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: `${version}.${group}` },
    spec: {
      group,
      version,
      service: { ...service, port: 443 },
      groupPriorityMinimum: 1500,
      versionPriority: 200,
      insecureSkipTLSVerify: true,
    },
  };
}

/** Flow logs and their UI, which came with v3.30. */
export function flowLogsObjects(release: OldRelease): KubeObject[] {
  return [workloads.flowLogs, workloads.flowUI].flatMap((name) => {
    const place = { name, namespace: namespaces.system };
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: place };
    return [account, deployment(place, { release, container: {} })];
  });
}
