import { randomBytes } from "node:crypto";
import type { KubeObject } from "../api/object.ts";
import type { Admission, Change } from "../apiserver/call.ts";
import { forbidden } from "../apiserver/status-errors.ts";
import type { Store } from "../apiserver/storage/store.ts";
import type { ServiceAllocator } from "./controllers/services/service-allocator.ts";

/** What a Kubernetes cluster does to objects as they are written, beyond what their kinds do by themselves. */

export function serviceAddresses(allocator: ServiceAllocator): Admission {
  const isService = ({ kind, subresource }: Change) =>
    kind.group === "" && kind.kind === "Service" && subresource === "";
  return {
    admit: (change) => {
      if (isService(change) && change.operation !== "DELETE") allocator.allocate(change.object, change.old);
    },
    committed: (change) => {
      if (!isService(change)) return;
      if (change.operation === "DELETE") allocator.release(change.object);
      else allocator.commit(change.object, change.old);
    },
    abandoned: (change) => {
      if (isService(change) && change.operation !== "DELETE") allocator.abandon(change.object, change.old);
    },
  };
}

interface PodSpec {
  serviceAccountName?: string;
  serviceAccount?: string;
  automountServiceAccountToken?: boolean;
  priorityClassName?: string;
  priority?: number;
  volumes?: { name: string; projected?: object }[];
  containers: Container[];
  initContainers?: Container[];
}

interface Container {
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

const ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";

/** New pods get a service account with its token, and the priority of their class. */
export function podDefaults(store: Store): Admission {
  return {
    admit: ({ kind, operation, object, subresource }) => {
      if (kind.group !== "" || kind.kind !== "Pod" || operation !== "CREATE" || subresource !== "") return;
      const spec = object["spec"] as PodSpec | undefined;
      if (!spec || !Array.isArray(spec.containers)) return;
      giveAccount(store, object, spec);
      givePriority(store, spec);
    },
  };
}

function giveAccount(store: Store, pod: KubeObject, spec: PodSpec): void {
  const name = spec.serviceAccountName || "default";
  const namespace = pod.metadata.namespace ?? "";
  spec.serviceAccountName = name;
  spec.serviceAccount = name;
  // The default account of a namespace that was made a moment ago is on its way.
  if (name !== "default" && !store.get("/serviceaccounts", namespace, name)) {
    const why = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`;
    throw forbidden({ group: "", plural: "pods" }, pod.metadata.name ?? "", why);
  }
  const mounted = spec.containers.some((one) => one.volumeMounts?.some(({ mountPath }) => mountPath === ACCOUNT_PATH));
  if (spec.automountServiceAccountToken === false || mounted) return;
  const volume = `kube-api-access-${randomBytes(3).toString("hex").slice(0, 5)}`;
  spec.volumes = [...(spec.volumes ?? []), { name: volume, projected: tokenVolume() }];
  for (const container of [...spec.containers, ...(spec.initContainers ?? [])]) {
    container.volumeMounts = [
      ...(container.volumeMounts ?? []),
      { name: volume, readOnly: true, mountPath: ACCOUNT_PATH },
    ];
  }
}

function tokenVolume(): object {
  const namespaceField = { apiVersion: "v1", fieldPath: "metadata.namespace" };
  return {
    defaultMode: 420,
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
      { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
      { downwardAPI: { items: [{ path: "namespace", fieldRef: namespaceField }] } },
    ],
  };
}

function givePriority(store: Store, spec: PodSpec): void {
  if (!spec.priorityClassName) return;
  const stored = store.get("scheduling.k8s.io/priorityclasses", "", spec.priorityClassName);
  if (!stored) {
    throw forbidden(
      { group: "", plural: "pods" },
      "",
      `no PriorityClass with name ${spec.priorityClassName} was found`,
    );
  }
  spec.priority = (JSON.parse(stored.body.toString()) as { value: number }).value;
}
