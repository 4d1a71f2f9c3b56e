import type { KubeObject } from "../../api/object.ts";
import type { Pod } from "../controllers/workload-types.ts";
import type { ContainerStart } from "../runtime/container-runner.ts";
import { ContainerStartError } from "../runtime/node-runtime.ts";

/** Reads what containers refer to; undefined when it is not there. */
export interface References {
  configMap(namespace: string, name: string): Promise<ConfigMap | undefined>;
  secret(namespace: string, name: string): Promise<Secret | undefined>;
  /** The path on nodes of the volume that a claim is bound to. */
  volume(namespace: string, claim: string): Promise<string | undefined>;
}

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

export interface Secret extends KubeObject {
  /** Base64. */
  data?: Record<string, string>;
}

interface KeyRef {
  name: string;
  key: string;
  optional?: boolean;
}

interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: {
    fieldRef?: { fieldPath: string };
    configMapKeyRef?: KeyRef;
    secretKeyRef?: KeyRef;
    resourceFieldRef?: { resource: string };
  };
}

interface EnvSource {
  prefix?: string;
  configMapRef?: { name: string; optional?: boolean };
  secretRef?: { name: string; optional?: boolean };
}

export type Environment = Record<string, string>;

/**
 * The environment a kubelet would give the container: the API server's service, then `envFrom`, then `env` with `$(NAME)` expanded.
 * A reference that is not optional and not there throws a `ContainerStartError`.
 */
export async function containerEnv(
  start: Omit<ContainerStart, "write" | "report">,
  apiService: { host: string; port: number },
  references: References,
): Promise<Environment> {
  const { container, pod } = start;
  const service: Environment = {
    KUBERNETES_SERVICE_HOST: apiService.host,
    KUBERNETES_SERVICE_PORT: String(apiService.port),
    KUBERNETES_SERVICE_PORT_HTTPS: String(apiService.port),
  };
  const env: Environment = { HOSTNAME: pod.spec.hostname ?? pod.metadata.name };
  for (const source of (container["envFrom"] as EnvSource[] | undefined) ?? []) {
    Object.assign(env, await wholeSource(source, pod, references));
  }
  for (const variable of (container["env"] as EnvVar[] | undefined) ?? []) {
    const value = await variableValue(variable, start, references, { ...service, ...env });
    if (value !== undefined) env[variable.name] = value;
  }
  return { ...service, ...env };
}

async function wholeSource(source: EnvSource, pod: Pod, references: References): Promise<Environment> {
  const { prefix = "", configMapRef, secretRef } = source;
  const namespace = pod.metadata.namespace ?? "";
  const data = configMapRef
    ? found("configmap", configMapRef, await references.configMap(namespace, configMapRef.name))?.data
    : secretRef
      ? decoded(found("secret", secretRef, await references.secret(namespace, secretRef.name)))
      : undefined;
  const usable = Object.entries(data ?? {}).filter(([key]) => VARIABLE_NAME.test(prefix + key));
  return Object.fromEntries(usable.map(([key, value]) => [prefix + key, value]));
}

/** What is not a name is left out, and the container starts without it. */
const VARIABLE_NAME = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;

async function variableValue(
  { value, valueFrom }: EnvVar,
  start: Omit<ContainerStart, "write" | "report">,
  references: References,
  known: Environment,
): Promise<string | undefined> {
  if (!valueFrom) return expand(value ?? "", known);
  const namespace = start.pod.metadata.namespace ?? "";
  const { fieldRef, configMapKeyRef, secretKeyRef } = valueFrom;
  if (fieldRef) return fieldValue(fieldRef.fieldPath, start);
  if (configMapKeyRef) {
    const object = found("configmap", configMapKeyRef, await references.configMap(namespace, configMapKeyRef.name));
    return keyOf("ConfigMap", configMapKeyRef, namespace, object?.data);
  }
  if (secretKeyRef) {
    const object = found("secret", secretKeyRef, await references.secret(namespace, secretKeyRef.name));
    return keyOf("Secret", secretKeyRef, namespace, decoded(object));
  }
  throw new ContainerStartError("environment", "nodes here know no resourceFieldRef");
}

function found<T>(what: string, ref: { name: string; optional?: boolean }, object: T | undefined): T | undefined {
  if (object === undefined && !ref.optional)
    throw new ContainerStartError("environment", `${what} "${ref.name}" not found`);
  return object;
}

function keyOf(what: string, ref: KeyRef, namespace: string, data: Environment | undefined): string | undefined {
  const value = data?.[ref.key];
  if (value === undefined && !ref.optional) {
    throw new ContainerStartError("environment", `couldn't find key ${ref.key} in ${what} ${namespace}/${ref.name}`);
  }
  return value;
}

/** The name of the ConfigMap that the container has mounted there. */
export function mountedConfigMap({ pod, container }: Pick<ContainerStart, "pod" | "container">, path: string) {
  const mounts = (container["volumeMounts"] as { name: string; mountPath: string }[] | undefined) ?? [];
  const volume = mounts.find(({ mountPath }) => mountPath === path)?.name;
  const volumes = (pod.spec["volumes"] as { name: string; configMap?: { name: string } }[] | undefined) ?? [];
  return volumes.find(({ name }) => name === volume)?.configMap?.name;
}

export function decoded(secret: Secret | undefined): Environment | undefined {
  if (secret === undefined) return undefined;
  const entries = Object.entries(secret.data ?? {});
  return Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]));
}

export function fieldValue(
  path: string,
  { pod, node, hostIPs, podIPs }: Pick<ContainerStart, "pod" | "node" | "hostIPs" | "podIPs">,
): string {
  const { metadata, spec } = pod;
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (keyed) return metadata[keyed[1] as "labels" | "annotations"]?.[keyed[2] as string] ?? "";
  const fields: Record<string, string | undefined> = {
    "metadata.name": metadata.name,
    "metadata.namespace": metadata.namespace,
    "metadata.uid": metadata.uid,
    "spec.nodeName": node,
    "spec.serviceAccountName": spec["serviceAccountName"] as string | undefined,
    "status.hostIP": hostIPs[0],
    "status.hostIPs": hostIPs.join(","),
    "status.podIP": podIPs[0],
    "status.podIPs": podIPs.join(","),
  };
  const value = fields[path];
  if (value === undefined) throw new ContainerStartError("environment", `unsupported fieldPath: ${path}`);
  return value;
}

/** `$(NAME)` of a variable known by now; `$$` is a dollar; what is not known stays as it was written. */
export function expand(text: string, known: Environment): string {
  return text.replace(/\$\$|\$\(([^)]+)\)/g, (whole, name: string | undefined) =>
    name === undefined ? "$" : (known[name] ?? whole),
  );
}
