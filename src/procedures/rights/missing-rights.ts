import type { ResourceKind } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../cluster/client.ts";
import { inParallel } from "../../kit/in-parallel.ts";
import { type Right, rightKey } from "./right.ts";

const REVIEWS: ResourceKind = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SelfSubjectAccessReview",
  plural: "selfsubjectaccessreviews",
  namespaced: false,
};
const AT_ONCE = 16;
const EVERYTHING: Right = { verb: "*", group: "*", resource: "*" };

/**
 * The rights the user does not have. The API server is asked, because only it knows every authorizer; an administrator costs one question, and a
 * right on any object of a resource is asked for before those on each.
 */
export async function missingRights(client: Client, rights: readonly Right[], signal?: AbortSignal): Promise<Right[]> {
  const asked = new Map<string, Promise<boolean>>();
  const allows = (right: Right): Promise<boolean> => {
    const text = rightKey(right);
    const answer = asked.get(text) ?? ask(client, right, signal);
    asked.set(text, answer);
    return answer;
  };
  if (await allows(EVERYTHING)) return [];
  const missing: Right[] = [];
  await inParallel(
    rights,
    AT_ONCE,
    async (right) => {
      const { name: _, ...any } = right;
      if (!(await allows(any)) && (right.name === undefined || !(await allows(right)))) missing.push(right);
    },
    signal,
  );
  return missing;
}

async function ask(client: Client, right: Right, signal: AbortSignal | undefined): Promise<boolean> {
  const [resource, subresource] = right.resource.split("/");
  const { verb, group, namespace, name } = right;
  const resourceAttributes = { verb, group, resource, subresource, namespace, name };
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: REVIEWS.kind,
    metadata: { name: "" },
    spec: { resourceAttributes },
  };
  try {
    const { status } = await client.create<typeof review & { status?: { allowed?: boolean } }>(REVIEWS, review, {
      ...(signal && { signal }),
    });
    return status?.allowed === true;
  } catch (error) {
    // A server that answers no questions about rights still refuses what is not allowed, when it is tried.
    if (error instanceof StatusError && [403, 404, 405].includes(error.code)) return true;
    throw error;
  }
}
