import type { KubeObject } from "../../../api/object.ts";
import type { Client } from "../../../cluster/client.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import { ENDPOINT_SLICES, ENDPOINTS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { matchesLabels } from "../label-selector.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { EndpointSlice, Pod, Service } from "../workload-types.ts";
import { isNamespaceLeaving } from "../workloads/replica-set.ts";
import {
  endpointsObject,
  hasManagedEndpoints,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  planEndpointSlices,
  SERVICE_NAME,
  type SlicePlan,
} from "./endpoint-slice-plan.ts";

/** Publishes the pods of a service: as EndpointSlices, and as the older Endpoints object. */
export function endpointSliceLoop(context: ControllerContext): ControllerLoop {
  const { informers } = context;
  const client = context.clientFor("endpointslice-controller");
  const endpointsClient = context.clientFor("endpoint-controller");
  // The slices just created, until the watch shows them: without this a second pass would create them again.
  const creating = new Map<string, Set<string>>();

  const slicesOf = (key: string): EndpointSlice[] | undefined => {
    const seen = informers.slicesByService.get(key).filter(isOurs);
    const expected = creating.get(key);
    for (const slice of seen) expected?.delete(slice.metadata.uid ?? "");
    if (expected && expected.size > 0) return undefined;
    creating.delete(key);
    return seen;
  };

  return {
    name: "endpointslice",
    workers: 5,
    watch(enqueue) {
      informers.services.onChange(({ key, type }) => {
        if (type === "deleted") creating.delete(key);
        enqueue(key);
      });
      informers.endpointSlices.onChange(({ object, type }) => {
        if (!isOurs(object)) return;
        const key = `${object.metadata.namespace}/${object.metadata.labels?.[SERVICE_NAME]}`;
        if (type === "deleted") creating.get(key)?.delete(object.metadata.uid ?? "");
        enqueue(key);
      });
      informers.pods.onChange(({ type, object, old }) => {
        if (type === "modified" && sameEndpoint(object, old)) return;
        for (const pod of old ? [old, object] : [object]) {
          for (const key of servicesFor(context, pod)) enqueue(key);
        }
      });
    },
    weight: (key) => informers.slicesByService.get(key).reduce((sum, slice) => sum + (slice.endpoints?.length ?? 0), 0),
    async reconcile(key) {
      const service = informers.services.get(key);
      const slices = slicesOf(key);
      if (!slices) return undefined;
      if (!service || service.metadata.deletionTimestamp) return undefined;
      if (!hasManagedEndpoints(service)) {
        await applyPlan(client, { create: [], update: [], remove: slices });
        return undefined;
      }
      const pods = informers.pods
        .list(service.metadata.namespace)
        .filter((pod) => matchesLabels(service.spec.selector ?? {}, pod.metadata.labels));
      const node = (name: string) => informers.nodes.get(name);
      try {
        const made = await applyPlan(client, planEndpointSlices({ service, pods, node, slices }));
        if (made.length > 0) creating.set(key, new Set(made));
        await writeEndpoints(endpointsClient, informers.endpoints.get(key), endpointsObject(service, pods));
      } catch (error) {
        if (!isNamespaceLeaving(error)) throw error;
      }
      return undefined;
    },
  };
}

function isOurs(slice: EndpointSlice): boolean {
  return slice.metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY;
}

/** Answers with the UIDs of what it created. */
async function applyPlan(client: Client, plan: SlicePlan): Promise<string[]> {
  for (const slice of plan.update) await client.replace(ENDPOINT_SLICES, slice);
  const made: string[] = [];
  for (const slice of plan.create) made.push((await client.create(ENDPOINT_SLICES, slice)).metadata.uid ?? "");
  for (const slice of plan.remove) {
    await client.delete(ENDPOINT_SLICES, slice.metadata).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
  return made;
}

async function writeEndpoints(client: Client, before: KubeObject | undefined, wanted: KubeObject): Promise<void> {
  if (!before) {
    await client.create(ENDPOINTS, wanted);
    return;
  }
  const same =
    semanticEqual(before["subsets"] ?? [], wanted["subsets"]) &&
    semanticEqual(before.metadata.labels ?? {}, wanted.metadata.labels ?? {});
  if (same) return;
  const metadata = { ...before.metadata, labels: wanted.metadata.labels };
  await client.replace(ENDPOINTS, { ...before, metadata, subsets: wanted["subsets"] });
}

/** Nothing of the pod changed that an endpoint shows. */
function sameEndpoint(pod: Pod, old: Pod | undefined): boolean {
  return (
    old !== undefined &&
    pod.spec.nodeName === old.spec.nodeName &&
    pod.metadata.deletionTimestamp === old.metadata.deletionTimestamp &&
    pod.status?.phase === old.status?.phase &&
    pod.status?.podIP === old.status?.podIP &&
    readiness(pod) === readiness(old) &&
    semanticEqual(pod.metadata.labels, old.metadata.labels)
  );
}

function readiness(pod: Pod): string | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === "Ready")?.status;
}

function servicesFor({ informers }: ControllerContext, pod: Pod): string[] {
  return informers.services
    .list(pod.metadata.namespace)
    .filter((service: Service) => service.spec.selector && matchesLabels(service.spec.selector, pod.metadata.labels))
    .map((service) => `${service.metadata.namespace}/${service.metadata.name}`);
}
