import type { KubeObject } from "../../../api/object.ts";
import { isAlreadyExists } from "../../../cluster/failures.ts";
import { SECRETS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import { errors } from "../errors.ts";
import { removeAndAwait } from "./remove.ts";
import { undefinedIfNotFound } from "./target.ts";

export type CopySecretsInputs = {
  from: string;
  to: string;
  names: readonly string[];
};

/** Names of those that were not there. */
type Before = readonly string[];

/** Copies Secrets to another namespace. What they hold is in no plan and no before-image; one that is there already stays as it is. */
export const copySecrets: Action<CopySecretsInputs, Before> = {
  needed: async (inputs, work) => (await missing(inputs, work)).length > 0,
  before: missing,

  async apply({ from, to }, work, before) {
    for (const name of before) {
      const secret = await read({ name, namespace: from }, work);
      if (secret === undefined) throw errors.STEP_TARGET_MISSING(`Secret ${from}/${name}`);
      const { type, data } = secret as KubeObject & { type?: string; data?: object };
      const copy = { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: to }, type, data };
      await work.client.create(SECRETS, copy, { signal: work.signal }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
      });
    }
  },

  async undo({ to }, work, before) {
    for (const name of before) await removeAndAwait({ apiVersion: "v1", kind: "Secret", name, namespace: to }, work);
  },
};

async function missing({ to, names }: CopySecretsInputs, work: Work): Promise<string[]> {
  const found: string[] = [];
  for (const name of names) if ((await read({ name, namespace: to }, work)) === undefined) found.push(name);
  return found;
}

function read(ref: { name: string; namespace: string }, { client, signal }: Work): Promise<KubeObject | undefined> {
  return client.get<KubeObject>(SECRETS, ref, { signal }).catch(undefinedIfNotFound);
}
