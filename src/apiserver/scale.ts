import type { KubeObject } from "../api/object.ts";
import type { Call, Reply } from "./call.ts";
import { type Core, findStored, objectOf } from "./core.ts";
import { parseBody } from "./decode.ts";
import { fieldAt, setFieldAt } from "./field-path.ts";
import { selectorText } from "./kubernetes/column.ts";
import type { Selector } from "./kubernetes/shapes.ts";
import { applyPatch } from "./patch-request.ts";
import type { ServedKind } from "./resource.ts";
import { badRequest } from "./status-errors.ts";
import { updateObject } from "./write.ts";

interface Scale extends KubeObject {
  spec: { replicas?: number };
  status: { replicas: number; selector?: string };
}

/** GET, PUT and PATCH of `/scale`: one number of an object, in a shape every scalable kind shares. */
export async function scale(core: Core, call: Call, verb: string): Promise<Reply> {
  const live = objectOf(call.kind, findStored(core, call.kind, call.namespace, call.name));
  const current = scaleOf(call.kind, live);
  if (verb === "get") return { status: 200, body: JSON.stringify(current) };
  const body = parseBody(call.body, verb === "patch" ? "application/json" : call.headers["content-type"]);
  const type = (call.headers["content-type"] ?? "").split(";")[0]!.trim();
  const asked = (verb === "patch" ? applyPatch(call.kind, type, current, body) : body) as Partial<Scale>;
  const replicas = asked.spec?.replicas ?? 0;
  if (!Number.isInteger(replicas) || replicas < 0) {
    throw badRequest(`spec.replicas: Invalid value: ${replicas}: must be greater than or equal to 0`);
  }
  const next = structuredClone(live);
  if (asked.metadata?.resourceVersion) next.metadata.resourceVersion = asked.metadata.resourceVersion;
  setFieldAt(next, call.kind.scale!.spec, replicas);
  const updated = await updateObject(core, call, live, next);
  return { status: 200, body: JSON.stringify(scaleOf(call.kind, updated)) };
}

function scaleOf(kind: ServedKind, object: KubeObject): Scale {
  const paths = kind.scale!;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  // Built-in kinds keep a selector object, custom ones its text.
  const selector = paths.selector === undefined ? undefined : (fieldAt(object, paths.selector) as string | Selector);
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: Number(fieldAt(object, paths.spec) ?? 0) },
    status: {
      replicas: Number(fieldAt(object, paths.status) ?? 0),
      ...(selector !== undefined && { selector: typeof selector === "string" ? selector : selectorText(selector) }),
    },
  };
}
