import type { KubeObject } from "../../../api/object.ts";
import { isAlreadyExists } from "../../../cluster/failures.ts";
import { createInformer } from "../../../cluster/informer.ts";
import { CONFIG_MAPS, SERVICE_ACCOUNTS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { isNamespaceLeaving } from "../workloads/replica-set.ts";

const ROOT_CA = "kube-root-ca.crt";

/** Every namespace has a `default` service account, which is created again when it is deleted. */
export function serviceAccountLoop(context: ControllerContext): ControllerLoop {
  const { informers } = context;
  const client = context.clientFor("service-account-controller");
  return {
    name: "serviceaccount",
    workers: 2,
    watch(enqueue) {
      informers.namespaces.onChange(({ key }) => enqueue(key));
      informers.serviceAccounts.onChange(({ type, object }) => {
        if (type === "deleted" && object.metadata.namespace) enqueue(object.metadata.namespace);
      });
    },
    async reconcile(name) {
      const namespace = informers.namespaces.get(name);
      if (!namespace || namespace.metadata.deletionTimestamp) return undefined;
      if (informers.serviceAccounts.get(`${name}/default`)) return undefined;
      const metadata = { name: "default", namespace: name };
      const account: KubeObject = { apiVersion: "v1", kind: "ServiceAccount", metadata };
      await client.create(SERVICE_ACCOUNTS, account).catch(ignoreThereOrLeaving);
      return undefined;
    },
  };
}

/** Every namespace has the certificate that the API server proves itself with, for pods to mount. */
export function rootCaLoop(context: ControllerContext, certificate: string): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("root-ca-cert-publisher");
  const configMaps = createInformer<KubeObject>(client, CONFIG_MAPS, {
    clock,
    fieldSelector: `metadata.name=${ROOT_CA}`,
  });
  return {
    name: "root-ca-certificate-publisher",
    workers: 2,
    watch(enqueue) {
      informers.namespaces.onChange(({ key }) => enqueue(key));
      configMaps.onChange(({ object }) => enqueue(object.metadata.namespace ?? ""));
    },
    async reconcile(name) {
      await configMaps.synced;
      const namespace = informers.namespaces.get(name);
      if (!namespace || namespace.metadata.deletionTimestamp) return undefined;
      const before = configMaps.get(`${name}/${ROOT_CA}`);
      const data = { "ca.crt": certificate };
      if (!before) {
        const metadata = { name: ROOT_CA, namespace: name, annotations: { [NOTE]: NOTE_TEXT } };
        const created: KubeObject = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
        await client.create(CONFIG_MAPS, created).catch(ignoreThereOrLeaving);
      } else if ((before["data"] as Record<string, string> | undefined)?.["ca.crt"] !== certificate) {
        await client.replace(CONFIG_MAPS, { ...before, data });
      }
      return undefined;
    },
    stop: () => configMaps.stop(),
  };
}

const NOTE = "kubernetes.io/description";
const NOTE_TEXT =
  "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc.";

function ignoreThereOrLeaving(error: unknown): void {
  if (!isAlreadyExists(error) && !isNamespaceLeaving(error)) throw error;
}
