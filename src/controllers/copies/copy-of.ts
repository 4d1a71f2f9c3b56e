import type { Condition, KubeObject, ObjectMeta } from "../../api/object.ts";

type Fields = Record<string, unknown>;

const METADATA = [
  ...["name", "namespace", "uid", "resourceVersion", "labels", "annotations"],
  ...["creationTimestamp", "deletionTimestamp", "ownerReferences"],
];
const APPLIED_BY_KUBECTL = "kubectl.kubernetes.io/last-applied-configuration";

/** What agents read of Kubernetes' objects, and no more: the environment of a pod stays out of another database. */
export function copyOf(object: KubeObject): KubeObject {
  const { apiVersion, kind } = object;
  const copy = { apiVersion, kind, metadata: head(object.metadata) };
  const [spec, status] = [fields(object["spec"]), fields(object["status"])];
  switch (kind) {
    case "Pod":
      return { ...copy, spec: podSpec(spec), status: podStatus(status) };
    case "Node":
      return {
        ...copy,
        spec: picked(spec, "podCIDR", "podCIDRs"),
        status: { ...picked(status, "addresses"), conditions: conditionsIn(status) },
      };
    case "NetworkPolicy":
      return { ...copy, spec };
    default:
      return copy;
  }
}

function head(metadata: ObjectMeta): ObjectMeta {
  const { [APPLIED_BY_KUBECTL]: _, ...annotations } = metadata.annotations ?? {};
  return picked({ ...metadata, annotations }, ...METADATA) as unknown as ObjectMeta;
}

function podSpec(spec: Fields): Fields {
  const containers = (list: unknown) =>
    ((list ?? []) as Fields[]).map((container) => picked(container, "name", "ports", "restartPolicy"));
  return {
    ...picked(spec, "nodeName", "hostNetwork", "serviceAccountName"),
    containers: containers(spec["containers"]),
    initContainers: containers(spec["initContainers"]),
  };
}

function podStatus(status: Fields): Fields {
  return { ...picked(status, "phase", "podIP", "podIPs"), conditions: conditionsIn(status) };
}

/** Without their times: a heartbeat is no news. */
function conditionsIn(status: Fields): Fields[] {
  return ((status["conditions"] ?? []) as Condition[]).map(({ type, status: is }) => ({ type, status: is }));
}

function picked(from: Readonly<Fields>, ...names: string[]): Fields {
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]));
}

function fields(value: unknown): Fields {
  return (value ?? {}) as Fields;
}
