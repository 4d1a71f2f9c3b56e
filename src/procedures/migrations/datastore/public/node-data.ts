import { calicoNames } from "../../../../api/names.ts";
import { groupVersion, type KubeObject, type ObjectMeta } from "../../../../api/object.ts";
import { NODES } from "../../../../cluster/kinds.ts";
import type { MovedKind } from "../layout.ts";

const { group } = calicoNames.groups.served;
const FOLDER = `/${calicoNames.dialect}/resources/v3/${group}/nodes/`;

/** Fields of a Node in etcd, and the annotations of Kubernetes' Node that say the same. All are text; AS numbers and interfaces as JSON. */
const FIELDS: Readonly<Record<string, string>> = {
  IPv4Address: "spec.bgp.ipv4Address",
  IPv6Address: "spec.bgp.ipv6Address",
  IPv4IPIPTunnelAddr: "spec.bgp.ipv4IPIPTunnelAddr",
  ASNumber: "spec.bgp.asNumber",
  RouteReflectorClusterID: "spec.bgp.routeReflectorClusterID",
  IPv4VXLANTunnelAddr: "spec.ipv4VXLANTunnelAddr",
  VXLANTunnelMACAddr: "spec.vxlanTunnelMACAddr",
  IPv6VXLANTunnelAddr: "spec.ipv6VXLANTunnelAddr",
  VXLANTunnelMACAddrV6: "spec.vxlanTunnelMACAddrV6",
  IPv4WireguardInterfaceAddr: "spec.wireguard.interfaceIPv4Address",
  IPv6WireguardInterfaceAddr: "spec.wireguard.interfaceIPv6Address",
  WireguardPublicKey: "status.wireguardPublicKey",
  WireguardPublicKeyV6: "status.wireguardPublicKeyV6",
  Interfaces: "spec.interfaces",
};
const IN_JSON = ["ASNumber", "Interfaces"];
const [LABELS, ANNOTATIONS] = [`${group}/labels`, `${group}/annotations`];
/** In etcd a Node has Kubernetes' labels too, and says which those are. */
const FROM_KUBERNETES = `${group}/kube-labels`;

type Tree = { [field: string]: unknown };

/** A Node of the public system, as `spec` of texts by their annotation: Kubernetes has the Node itself. */
export const nodeData: MovedKind = {
  served: NODES,
  keyOf: ({ metadata }) => `${FOLDER}${metadata.name}`,
  written: (object, before) => JSON.stringify(inEtcd(object, before)),
  fromKubernetes({ metadata, ...node }) {
    const { [LABELS]: labels, [ANNOTATIONS]: annotations, ...others } = metadata.annotations ?? {};
    const texts = Object.keys(FIELDS).map((field) => [field, others[`${group}/${field}`]] as const);
    const { name, uid, resourceVersion, creationTimestamp } = metadata;
    const identity = { name, uid, resourceVersion, creationTimestamp } as ObjectMeta;
    return data({ ...node, metadata: identity } as KubeObject, texts, parsed(labels), parsed(annotations));
  },
  toKubernetes: (object) => object,
  annotations(object) {
    const spec = (object?.["spec"] ?? {}) as Record<string, string>;
    const { labels, annotations } = object?.metadata ?? {};
    return {
      ...Object.fromEntries(Object.keys(FIELDS).map((field) => [`${group}/${field}`, spec[field] ?? null])),
      [LABELS]: labels ? JSON.stringify(labels) : null,
      [ANNOTATIONS]: annotations ? JSON.stringify(annotations) : null,
    };
  },
};

/** Undefined where etcd has nothing of a node but its name. */
export function nodeFromEtcd(object: KubeObject): KubeObject | undefined {
  const { labels = {}, annotations = {}, ...identity } = object.metadata;
  const { [FROM_KUBERNETES]: known, ...own } = annotations;
  const inherited = Object.keys(parsed(known));
  const texts = Object.entries(FIELDS).map(([field, path]) => {
    const value = path.split(".").reduce<unknown>((tree, key) => (tree as Tree | undefined)?.[key], object);
    return [field, value === undefined || typeof value === "string" ? value : JSON.stringify(value)] as const;
  });
  const ownLabels = Object.fromEntries(Object.entries(labels).filter(([key]) => !inherited.includes(key)));
  return data({ ...object, metadata: identity }, texts, ownLabels, own);
}

/** What Kubernetes calls the node; undefined for a host that is none of its nodes. */
export function nodeInKubernetes(object: KubeObject): string | undefined {
  const { orchRefs = [] } = (object["spec"] ?? {}) as { orchRefs?: { nodeName?: string; orchestrator: string }[] };
  return orchRefs.find(({ orchestrator }) => orchestrator === "k8s")?.nodeName;
}

function data(
  { apiVersion, kind, metadata }: KubeObject,
  texts: readonly (readonly [string, string | undefined])[],
  labels: Record<string, string>,
  annotations: Record<string, string>,
): KubeObject | undefined {
  const spec = Object.fromEntries(texts.flatMap(([field, text]) => (text ? [[field, normal(field, text)]] : [])));
  const some = (fields: object) => Object.keys(fields).length > 0;
  if (![spec, labels, annotations].some(some)) return undefined;
  const own = { ...(some(labels) && { labels }), ...(some(annotations) && { annotations }) };
  return { apiVersion, kind, metadata: { ...metadata, ...own }, spec };
}

function normal(field: string, text: string): string {
  if (!IN_JSON.includes(field)) return text;
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

/** What is there besides stays, as are the references and addresses that agents keep. */
function inEtcd({ metadata, ...object }: KubeObject, before: string | undefined): KubeObject {
  const { name, uid, creationTimestamp } = metadata;
  const made = { orchRefs: [{ nodeName: name, orchestrator: "k8s" }] };
  const node = (
    before === undefined ? { metadata: { name, uid, creationTimestamp }, spec: made } : JSON.parse(before)
  ) as KubeObject & Tree;
  const known = node.metadata.annotations?.[FROM_KUBERNETES];
  const inherited = Object.keys(parsed(known));
  const kept = Object.entries(node.metadata.labels ?? {}).filter(([key]) => inherited.includes(key));
  const labels = { ...metadata.labels, ...Object.fromEntries(kept) };
  const annotations = { ...metadata.annotations, ...(known !== undefined && { [FROM_KUBERNETES]: known }) };
  const spec = object["spec"] as Record<string, string>;
  for (const [field, path] of Object.entries(FIELDS)) {
    const text = spec[field];
    put(node, path.split("."), text !== undefined && IN_JSON.includes(field) ? JSON.parse(text) : text);
  }
  const { labels: _, annotations: __, ...rest } = node.metadata;
  return {
    ...node,
    ...{ apiVersion: groupVersion(calicoNames.groups.served), kind: NODES.kind },
    metadata: {
      ...rest,
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
  };
}

function put(tree: Tree, [field = "", ...path]: readonly string[], value: unknown): void {
  if (path.length > 0) {
    if (value === undefined && tree[field] === undefined) return;
    tree[field] ??= {};
    put(tree[field] as Tree, path, value);
  } else if (value === undefined) delete tree[field];
  else tree[field] = value;
}

function parsed(text: string | undefined): Record<string, string> {
  try {
    return (JSON.parse(text ?? "{}") ?? {}) as Record<string, string>;
  } catch {
    return {};
  }
}
