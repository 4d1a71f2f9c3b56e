import { isNotFound } from "../../../cluster/failures.ts";
import { NODES } from "../../../cluster/kinds.ts";
import { inParallel } from "../../../kit/in-parallel.ts";
import type { Action, Work } from "../../action.ts";
import { undefinedIfNotFound } from "../objects/target.ts";

type Labels = Readonly<Record<string, string>>;

export type LabelNodesInputs = {
  /** By node: the labels it gets. */
  nodes: Readonly<Record<string, Labels>>;
};

/** By node and label: the value it had, or null. */
type Before = Record<string, Record<string, string | null>>;

const AT_ONCE = 8;

/** Labels nodes. Taking it back touches only labels that still have the value given here. */
export const labelNodes: Action<LabelNodesInputs, Before> = {
  async needed({ nodes }, work) {
    for (const [name, labels] of Object.entries(nodes)) {
      const now = await labelsOf(name, work);
      if (Object.entries(labels).some(([key, value]) => now?.[key] !== value)) return true;
    }
    return false;
  },

  async before({ nodes }, work) {
    const before: Before = {};
    for (const [name, labels] of Object.entries(nodes)) {
      const now = (await labelsOf(name, work)) ?? {};
      before[name] = Object.fromEntries(Object.keys(labels).map((key) => [key, now[key] ?? null]));
    }
    return before;
  },

  async apply({ nodes }, work) {
    const { client, signal, say } = work;
    await inParallel(
      Object.entries(nodes),
      AT_ONCE,
      async ([name, labels]) => {
        await client.patch(NODES, { name }, { type: "merge", patch: { metadata: { labels } } }, { signal });
        say(
          `${name}: ${Object.entries(labels)
            .map(([key, value]) => `${key}=${value}`)
            .join(", ")}`,
        );
      },
      signal,
    );
  },

  async undo({ nodes }, work, before) {
    const { client, signal } = work;
    await inParallel(
      Object.entries(nodes),
      AT_ONCE,
      async ([name, labels]) => {
        const now = await labelsOf(name, work);
        const ours = Object.entries(labels).filter(([key, value]) => now?.[key] === value);
        if (ours.length === 0) return;
        const old = Object.fromEntries(ours.map(([key]) => [key, before[name]?.[key] ?? null]));
        const patch = { metadata: { labels: old } };
        await client.patch(NODES, { name }, { type: "merge", patch }, { signal }).catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        });
      },
      signal,
    );
  },
};

async function labelsOf(name: string, { client, signal }: Work): Promise<Labels | undefined> {
  const node = await client.get(NODES, { name }, { signal }).catch(undefinedIfNotFound);
  return node?.metadata.labels ?? (node && {});
}
