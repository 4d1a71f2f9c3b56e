import type { Names } from "../../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../../api/object.ts";
import { v3Places } from "../../../api/resources/v3-places.ts";
import type { Action, Work } from "../../action.ts";
import { awaitObjects } from "../objects/await-objects.ts";
import { mergePatch } from "../objects/merge-patch.ts";
import type { Target } from "../objects/target.ts";

type Labels = Readonly<Record<string, string>>;

export type EnableAutoHostEndpointsInputs = {
  configuration: Target;
  patch: Readonly<Record<string, unknown>>;
  /** By node: labels its endpoint must have before anything old is deleted. */
  nodes: Readonly<Record<string, Labels>>;
  /** Automatic endpoints were there before: taking this back leaves them. */
  wasEnabled: boolean;
};

type Before = Parameters<NonNullable<typeof mergePatch.undo>>[2];

/** Turns automatic host endpoints on and waits until every node has its own, with its labels. Until then the old ones must stay. */
export const enableAutoHostEndpoints: Action<EnableAutoHostEndpointsInputs, Before> = {
  async needed(inputs, work) {
    const { configuration: target, patch } = inputs;
    if (await mergePatch.needed({ target, patch }, work)) return true;
    const { items } = await work.client.list(hostEndpoints(work.names), { signal: work.signal });
    return missing(items, inputs, work.names).length > 0;
  },

  before: ({ configuration: target, patch }, work) => mergePatch.before!({ target, patch }, work),
  apply: ({ configuration: target, patch }, work, before) => mergePatch.apply({ target, patch }, work, before),

  async confirm(inputs, work) {
    const total = Object.keys(inputs.nodes).length;
    await awaitObjects(work, [{ kind: hostEndpoints(work.names) }], ([found = []]) => {
      const [first, ...more] = missing(found, inputs, work.names);
      if (first === undefined) return "done";
      const done = total - more.length - 1;
      return { waitingFor: `automatic host endpoints: ${done} of ${total} nodes have one, ${first} does not` };
    });
    work.say(`${total} nodes have an automatic host endpoint with their labels`);
  },

  async undo({ configuration: target, patch, wasEnabled }, work, before) {
    await mergePatch.undo!({ target, patch }, work, before);
    if (!wasEnabled) await awaitNone(work);
  },
};

/** Nodes whose automatic endpoint for all interfaces is not there, or lacks a label. */
function missing(endpoints: readonly KubeObject[], { nodes }: EnableAutoHostEndpointsInputs, names: Names): string[] {
  const labelsOfNode = new Map<string, Labels>();
  for (const endpoint of endpoints.filter((one) => isAutomatic(one, names))) {
    const { node, interfaceName } = (endpoint["spec"] ?? {}) as { node?: string; interfaceName?: string };
    if (node !== undefined && interfaceName === "*") labelsOfNode.set(node, endpoint.metadata.labels ?? {});
  }
  return Object.entries(nodes).flatMap(([node, wanted]) => {
    const has = labelsOfNode.get(node);
    return has && Object.entries(wanted).every(([key, value]) => has[key] === value) ? [] : [node];
  });
}

async function awaitNone(work: Work): Promise<void> {
  await awaitObjects(work, [{ kind: hostEndpoints(work.names) }], ([found = []]) => {
    const left = found.filter((endpoint) => isAutomatic(endpoint, work.names)).length;
    return left === 0 ? "done" : { waitingFor: `${left} automatic host endpoints to be deleted` };
  });
}

function isAutomatic({ metadata }: KubeObject, { labels }: Names): boolean {
  return metadata.labels?.[labels.createdBy.key] === labels.createdBy.value;
}

function hostEndpoints(names: Names): ResourceKind {
  return v3Places(names).find(({ noun }) => noun === "hostEndpoint")!.stored;
}
