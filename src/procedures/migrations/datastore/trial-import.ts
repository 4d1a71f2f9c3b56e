import type { Names } from "../../../api/names.ts";
import type { CustomResourceDefinition } from "../../../api/schema/crd.ts";
import { createClient } from "../../../cluster/client.ts";
import { CRDS, NAMESPACES } from "../../../cluster/kinds.ts";
import type { Found } from "../../plans/upgrade/inventory.ts";
import type { EtcdSnapshot } from "./etcd-objects.ts";
import { readKubernetes, writeKubernetes } from "./kubernetes-objects.ts";
import type { StoredObject, Unplaced } from "./layout.ts";
import { byId, differences, type StoredObjects } from "./stored-objects.ts";

interface TrialOptions {
  /** Those that will be applied. */
  crds: readonly CustomResourceDefinition[];
  namespaces: readonly string[];
  nodes: readonly string[];
  names: Names;
  signal: AbortSignal;
}

interface Trial {
  found: Found[];
  /** Ids of objects that have no place in Kubernetes. */
  leave: string[];
}

const again = ({ dialect }: Names): string =>
  `Change or delete the object in etcd: ${dialect === "vendor" ? "vendorctl --datastore etcd" : "calicoctl, or etcdctl for what IPAM keeps"}.`;

/** Imports everything into an API server of this process, with the CRDs to come: what that refuses or changes, the cluster would too. */
export async function trialImport(
  { objects, unplaced }: Pick<EtcdSnapshot, "objects" | "unplaced">,
  options: TrialOptions,
): Promise<Trial> {
  const { crds, namespaces, nodes, names, signal } = options;
  const homeless = [...objects.values()].filter(
    ({ kind, object }) => kind.served.namespaced && !namespaces.includes(object.metadata.namespace ?? ""),
  );
  const hosts = [...objects.values()].filter(
    ({ kind, object }) => kind.annotations && !nodes.includes(object.metadata.name),
  );
  const found = homeless.map(({ id, object }): Found => {
    const why = `Namespace ${object.metadata.namespace} is not there, and Kubernetes keeps nothing in it.`;
    return {
      name: nameFor(id),
      at: id,
      fate: "lost",
      why,
      todo: "Create the namespace, or accept the loss; the object stays in etcd.",
    };
  });
  const stays: readonly Unplaced[] = [
    ...unplaced,
    ...hosts.map(({ id }) => ({ id, unplaced: "It is no node of Kubernetes, which keeps nodes of its own only." })),
  ];
  const todo = "Accept the loss; it stays in etcd.";
  found.push(...stays.map(({ id, unplaced: why }): Found => ({ name: nameFor(id), at: id, fate: "lost", why, todo })));
  const leave = [...homeless, ...hosts].map(({ id }) => id);
  const wanted = byId([...objects.values()].filter(({ id, kind }) => !leave.includes(id) && !kind.annotations));
  const { createApiServer } = await import("../../../apiserver/server.ts");
  const { kubernetesKinds } = await import("../../../apiserver/kubernetes/kinds.ts");
  const server = await createApiServer({ kinds: kubernetesKinds() });
  try {
    const client = createClient(server.transport(), { userAgent: names.tool });
    for (const crd of crds) await client.create(CRDS, crd, { signal });
    for (const name of new Set([...wanted.values()].flatMap(({ object }) => object.metadata.namespace ?? []))) {
      const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
      await client.create(NAMESPACES, namespace, { signal }).catch(() => undefined);
    }
    const access = { client, names, signal };
    const refused = new Map<string, string>();
    await writeAll(wanted, access, refused);
    const accepted = byId([...wanted.values()].filter(({ id }) => !refused.has(id)));
    const changed = differences(accepted, await readKubernetes(access));
    return {
      leave,
      found: [
        ...found,
        ...[...refused].map(
          ([id, why]): Found => ({ name: nameFor(id), at: id, fate: "blocks", why, todo: again(names) }),
        ),
        ...changed.map(({ id, why }): Found => {
          return {
            name: nameFor(id),
            at: id,
            fate: "blocks",
            why: `The CRD keeps it otherwise: ${why}.`,
            todo: again(names),
          };
        }),
      ],
    };
  } finally {
    await server.close();
  }
}

/** All at once, and one by one where something is refused, so that every refusal is known. */
async function writeAll(
  wanted: StoredObjects,
  access: Parameters<typeof writeKubernetes>[1],
  refused: Map<string, string>,
): Promise<void> {
  try {
    await writeKubernetes(wanted, access);
  } catch {
    for (const one of wanted.values()) {
      await writeKubernetes(single(one), access).catch((error: unknown) => {
        refused.set(one.id, (error as Error).message);
      });
    }
  }
}

const single = (one: StoredObject): StoredObjects => byId([one]);

/** `NetworkPolicy/gone/web`: one word, as `--accept-loss` takes it. */
const nameFor = (id: string): string => id.replace(" ", "/");
