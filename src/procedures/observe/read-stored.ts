import type { Names } from "../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../api/object.ts";
import type { Workload } from "../../api/workload-objects.ts";
import type { Client } from "../../cluster/client.ts";
import { DEPLOYMENTS, NAMESPACES, NODES, PODS, SERVICES } from "../../cluster/kinds.ts";
import { REMOVED_KINDS } from "../../releases/not-carried/kinds.ts";
import type { SeenStored } from "../observation.ts";
import { metadataPages } from "../owned-through-v3.ts";
import type { ClusterObjects } from "./cluster-objects.ts";
import type { Reader } from "./reader.ts";

interface Definition extends KubeObject {
  spec: {
    group: string;
    scope: string;
    names: { kind: string; plural: string };
    versions?: { name: string; served: boolean; storage: boolean }[];
    version?: string;
  };
}

/** What agents alone write, one for each pod, block or node: every release since v3.15 has the same fields of it. */
const BOOKKEEPING = /^(ipamblocks|ipamhandles|blockaffinities)\./;
/** Annotations of Kubernetes itself that other programs read are of no interest here. */
const OF_INTEREST =
  /(^|\.)(vendor\.io|projectcalico\.org)\/|^kubernetes\.io\/(in|e)gress-bandwidth$|\.alpha\.|\.beta\./;

/** Every object of the service's own groups, and what people set elsewhere for it. */
export async function readStored(
  client: Client,
  reader: Reader,
  seen: Pick<ClusterObjects, "definitions">,
  names: Names,
  signal: AbortSignal | undefined,
): Promise<SeenStored> {
  const kinds = storedKinds(seen.definitions as Definition[], names);
  const { kubeControllers, typha } = names.workloads;
  const named = (name: string) => reader.list<Workload>(DEPLOYMENTS, { fieldSelector: `metadata.name=${name}` });
  const [objects, deployments, annotated] = await Promise.all([
    Promise.all(kinds.map((kind) => reader.list(kind))),
    Promise.all([named(kubeControllers), named(typha)]),
    Promise.all([PODS, NAMESPACES, SERVICES, NODES].map((kind) => annotatedOf(client, kind, signal))),
  ]);
  return { objects: objects.flat(), deployments: deployments.flat(), annotated: annotated.flat() };
}

/** Of the service's groups, and of those that older releases read. */
function storedKinds(definitions: readonly Definition[], { groups }: Names): ResourceKind[] {
  const foreign = REMOVED_KINDS.flatMap(({ group, plural }) => {
    return typeof group === "string" ? [] : [`${plural}.${group.name}`];
  });
  const own = [groups.operator, groups.stored].map(({ group }) => group);
  return definitions.flatMap(({ metadata, spec }) => {
    if (BOOKKEEPING.test(metadata.name)) return [];
    if (!own.includes(spec.group) && !foreign.includes(metadata.name)) return [];
    const served = (spec.versions ?? []).filter((one) => one.served);
    const version = (served.find(({ storage }) => storage) ?? served[0])?.name ?? spec.version;
    const { kind, plural } = spec.names;
    return version ? [{ group: spec.group, version, kind, plural, namespaced: spec.scope === "Namespaced" }] : [];
  });
}

async function annotatedOf(
  client: Client,
  kind: ResourceKind,
  signal: AbortSignal | undefined,
): Promise<SeenStored["annotated"][number][]> {
  const found: SeenStored["annotated"][number][] = [];
  for await (const page of metadataPages(client, kind, { signal, mustAnswer: true })) {
    for (const { namespace, name, annotations = {} } of page) {
      const ours = Object.entries(annotations).filter(([key]) => OF_INTEREST.test(key));
      const object = `${kind.kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
      if (ours.length > 0) found.push({ object, annotations: Object.fromEntries(ours) });
    }
  }
  return found;
}
