import type { KubeObject } from "../../api/object.ts";
import type { Call, UserInfo } from "../call.ts";
import { badRequest } from "../status-errors.ts";
import type { Attributes } from "./policy-rule.ts";
import type { Authorizer } from "./rbac.ts";

/** Kinds that are asked, not stored: the answer is the object with its status. Keyed by `group/plural`. */
export type Reviews = Readonly<Record<string, (call: Call, object: KubeObject) => KubeObject>>;

interface ReviewSpec {
  user?: string;
  uid?: string;
  groups?: string[];
  token?: string;
  audiences?: string[];
  namespace?: string;
  resourceAttributes?: Record<string, string | undefined>;
  nonResourceAttributes?: { path?: string; verb?: string };
}

export function reviews(authorizer: Authorizer, userOfToken: (token: string) => UserInfo | undefined): Reviews {
  const access = (object: KubeObject, user: UserInfo) => {
    const { allowed, reason } = authorizer.authorize(user, attributesOf(specOf(object)));
    return { ...object, status: { allowed, ...(reason && { reason }) } };
  };
  const namedAccess = (_call: Call, object: KubeObject) => {
    const spec = specOf(object);
    if (!spec.user && !spec.groups?.length)
      throw badRequest("spec.user: at least one of user or group must be specified");
    return access(object, { name: spec.user ?? "", groups: spec.groups ?? [] });
  };
  return {
    "authorization.k8s.io/selfsubjectaccessreviews": (call, object) => access(object, call.user),
    "authorization.k8s.io/subjectaccessreviews": namedAccess,
    "authorization.k8s.io/localsubjectaccessreviews": namedAccess,
    "authorization.k8s.io/selfsubjectrulesreviews": (call, object) => rulesReview(authorizer, call, object),
    "authentication.k8s.io/selfsubjectreviews": (call, object) => ({
      ...object,
      status: { userInfo: printed(call.user) },
    }),
    "authentication.k8s.io/tokenreviews": (_call, object) => tokenReview(object, userOfToken),
  };
}

function specOf(object: KubeObject): ReviewSpec {
  return (object["spec"] ?? {}) as ReviewSpec;
}

function attributesOf(spec: ReviewSpec): Attributes {
  const asked = spec.resourceAttributes;
  if (asked) {
    return {
      resource: true,
      verb: asked["verb"] ?? "",
      group: asked["group"] ?? "",
      plural: asked["resource"] ?? "",
      subresource: asked["subresource"] ?? "",
      namespace: asked["namespace"] ?? "",
      name: asked["name"] ?? "",
    };
  }
  const other = spec.nonResourceAttributes;
  if (!other) throw badRequest("spec: exactly one of nonResourceAttributes or resourceAttributes must be specified");
  return { resource: false, verb: other.verb ?? "", path: other.path ?? "" };
}

function rulesReview(authorizer: Authorizer, call: Call, object: KubeObject): KubeObject {
  const rules = authorizer.rulesFor(call.user, specOf(object).namespace ?? "");
  const status = {
    resourceRules: rules.filter((rule) => rule.resources?.length),
    nonResourceRules: rules.filter((rule) => rule.nonResourceURLs?.length),
    incomplete: false,
  };
  return { ...object, status };
}

function tokenReview(object: KubeObject, userOfToken: (token: string) => UserInfo | undefined): KubeObject {
  const { token, audiences } = specOf(object);
  const user = token ? userOfToken(token) : undefined;
  const status = user
    ? { authenticated: true, user: printed(user), ...(audiences && { audiences }) }
    : { authenticated: false, user: {}, error: "the token is not valid: it has expired, or was not issued here" };
  return { ...object, status };
}

function printed(user: UserInfo): Record<string, unknown> {
  return { username: user.name, ...(user.uid && { uid: user.uid }), groups: user.groups };
}
