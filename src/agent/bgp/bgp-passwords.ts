import type { KubeObject } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import type { SecretRef } from "../../calc/bgp/bgp-inputs.ts";
import type { Client } from "../../cluster/client.ts";
import { SECRETS } from "../../cluster/kinds.ts";

interface Secret extends KubeObject {
  data?: Record<string, string>;
}

/** Passwords of sessions, by the Secrets that hold them. What was read once stays known while the API server is silent. */
export interface BgpPasswords {
  of(ref: SecretRef): string | undefined;
  /** The Secret was asked for, and the API server has answered. */
  knows(name: string): boolean;
  /** Reads every Secret again; false: one was never read, and the API server does not say why. */
  read(refs: readonly SecretRef[]): Promise<boolean>;
}

const REFUSED = [403, 404];

export function bgpPasswords(client: Client, namespace: string): BgpPasswords {
  const known = new Map<string, Record<string, string>>();
  const readOne = async (name: string): Promise<boolean> => {
    try {
      const { data = {} } = await client.get<Secret>(SECRETS, { namespace, name });
      known.set(name, data);
      return true;
    } catch (error) {
      if (!(error instanceof StatusError) || !REFUSED.includes(error.code)) return known.has(name);
      known.set(name, {});
      return true;
    }
  };
  return {
    knows: (name) => known.has(name),
    of({ name, key }) {
      const text = known.get(name)?.[key];
      return text === undefined ? undefined : Buffer.from(text, "base64").toString("utf8").replace(/\n$/, "");
    },
    async read(refs) {
      const names = [...new Set(refs.map(({ name }) => name))];
      const results = await Promise.all(names.map(readOne));
      return results.every(Boolean);
    },
  };
}
