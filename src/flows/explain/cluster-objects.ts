import { vendorNames } from "../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../api/object.ts";
import { calculatorKinds, type InputName, NOT_OF_VERDICTS } from "../../calc/calculator-kinds.ts";
import type { Client } from "../../cluster/client.ts";
import { isGone, isNotFound } from "../../cluster/failures.ts";
import type { Clock } from "../../kit/clock.ts";

/** What decides policy, as it is now. */
export type ClusterObjects = ReadonlyMap<InputName, readonly KubeObject[]>;

/** For so long answers rest on one look; who asks again after a change of policy waits as long. */
const KEPT_MS = 5_000;
/** Read at once, so that no page keeps the event loop for long. */
const PAGE_SIZE = 250;

/** Objects for explanations. Questions that come at once share one read, and nothing is kept after a few seconds. */
export function clusterObjects(client: Client, clock: Clock): () => Promise<ClusterObjects> {
  let kept: Promise<ClusterObjects> | undefined;
  return () => {
    if (kept) return kept;
    const reading = readAll(client);
    kept = reading;
    const forget = () => {
      if (kept === reading) kept = undefined;
    };
    reading.then(() => clock.setTimeout(forget, KEPT_MS), forget);
    return reading;
  };
}

async function readAll(client: Client): Promise<ClusterObjects> {
  const objects = new Map<InputName, readonly KubeObject[]>();
  for (const [name, kind] of calculatorKinds(vendorNames)) {
    if (NOT_OF_VERDICTS.includes(name)) continue;
    // One after the other: several at once would keep the event loop, and the API server, longer.
    objects.set(name, await readKind(client, kind, name === "pods" ? podFacts : whole));
  }
  return objects;
}

async function readKind(
  client: Client,
  kind: ResourceKind,
  factsOf: (object: KubeObject) => KubeObject,
): Promise<KubeObject[]> {
  const items: KubeObject[] = [];
  try {
    let next: string | undefined;
    do {
      const page = await client.listPage<KubeObject>(kind, {
        limit: PAGE_SIZE,
        ...(next === undefined ? {} : { continue: next }),
      });
      for (const item of page.items) items.push(factsOf(item));
      next = page.continue;
    } while (next !== undefined);
    return items;
  } catch (error) {
    // Of a cluster that does not have the kind.
    if (isNotFound(error)) return [];
    // The pages outlived the API server's history.
    if (isGone(error)) return (await client.list<KubeObject>(kind)).items.map(factsOf);
    throw error;
  }
}

function whole(object: KubeObject): KubeObject {
  return object;
}

interface Pod extends KubeObject {
  spec?: Record<string, unknown> & { containers?: Container[]; initContainers?: Container[] };
  status?: { phase?: string; podIP?: string; podIPs?: unknown };
}

interface Container {
  ports?: unknown;
  restartPolicy?: string;
}

/** There may be many thousands: what policy does not ask is let go at once. */
function podFacts(object: KubeObject): KubeObject {
  const { apiVersion, kind, metadata, spec = {}, status = {} } = object as Pod;
  const { name, namespace, labels, ownerReferences, deletionTimestamp } = metadata;
  const { nodeName, hostNetwork, serviceAccountName, containers = [], initContainers = [] } = spec;
  const { phase, podIP, podIPs } = status;
  const ports = (list: Container[]) => list.map((one) => ({ ports: one.ports, restartPolicy: one.restartPolicy }));
  const known = (value: object) => Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined));
  return {
    ...{ apiVersion, kind },
    metadata: known({
      name,
      namespace,
      labels,
      ownerReferences,
      deletionTimestamp,
    }) as unknown as KubeObject["metadata"],
    spec: {
      ...known({ nodeName, hostNetwork, serviceAccountName }),
      ...{ containers: ports(containers), initContainers: ports(initContainers) },
    },
    status: known({ phase, podIP, podIPs }),
  };
}
