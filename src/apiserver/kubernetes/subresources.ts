import type { KubeObject } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import type { ServiceAccountTokens } from "../auth/service-account-tokens.ts";
import type { Call, Reply } from "../call.ts";
import { type Core, findStored, objectOf } from "../core.ts";
import { parseBody } from "../decode.ts";
import { remove } from "../delete.ts";
import { storageKey } from "../registry.ts";
import { badRequest, conflict } from "../status-errors.ts";
import type { Subresource } from "../subresource.ts";
import { updateObject } from "../write.ts";

/** The subresources Kubernetes' own kinds have beyond status and scale. Logs and exec belong to the runtime. */
export function kubernetesSubresources(tokens: ServiceAccountTokens): Subresource[] {
  return [
    {
      group: "",
      plural: "pods",
      name: "binding",
      kind: { group: "", version: "v1", kind: "Binding" },
      verbs: ["create"],
      handle: bind,
    },
    {
      group: "",
      plural: "pods",
      name: "eviction",
      kind: { group: "policy", version: "v1", kind: "Eviction" },
      verbs: ["create"],
      handle: evict,
    },
    {
      group: "",
      plural: "serviceaccounts",
      name: "token",
      kind: { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" },
      verbs: ["create"],
      handle: (core, call) => requestToken(core, call, tokens),
    },
    {
      group: "",
      plural: "namespaces",
      name: "finalize",
      kind: { group: "", version: "v1", kind: "Namespace" },
      verbs: ["update"],
      handle: finalize,
    },
  ];
}

const CREATED = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

/** What a scheduler does: puts a pod on a node, once. */
async function bind(core: Core, call: Call): Promise<Reply> {
  const binding = parseBody(call.body, call.headers["content-type"]) as { target?: { kind?: string; name?: string } };
  const node = binding.target?.name;
  if (!node) throw badRequest("target.name: Required value: a binding names the node");
  const live = objectOf(call.kind, findStored(core, call.kind, call.namespace, call.name));
  const spec = live["spec"] as { nodeName?: string };
  if (spec.nodeName)
    throw conflict(call.kind, call.name, `pod ${call.name} is already assigned to node "${spec.nodeName}"`);
  const status = (live["status"] ?? {}) as { conditions?: { type: string }[] };
  const others = (status.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
  const lastTransitionTime = `${core.now().toISOString().slice(0, 19)}Z`;
  const scheduled = { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime };
  const next = structuredClone(live);
  next["spec"] = { ...spec, nodeName: node };
  next["status"] = { ...status, conditions: [...others, scheduled] };
  await updateObject(core, call, live, next);
  return { status: 201, body: JSON.stringify(CREATED) };
}

interface Budget extends KubeObject {
  spec: { selector?: { matchLabels?: Record<string, string> } };
  status?: { disruptionsAllowed?: number; currentHealthy?: number; desiredHealthy?: number };
}

/** A delete that asks the pod's disruption budget first. */
async function evict(core: Core, call: Call): Promise<Reply> {
  const live = objectOf(call.kind, findStored(core, call.kind, call.namespace, call.name));
  const budgets = core.registry.find("policy", "v1", "poddisruptionbudgets");
  if (budgets) {
    for (const stored of core.store.list(storageKey(budgets), call.namespace)) {
      const budget = objectOf(budgets, stored) as Budget;
      if (guards(budget, live) && (budget.status?.disruptionsAllowed ?? 0) < 1) throw overBudget(budget);
    }
  }
  const eviction = parseBody(call.body, call.headers["content-type"]) as { deleteOptions?: unknown };
  const body = Buffer.from(eviction.deleteOptions ? JSON.stringify(eviction.deleteOptions) : "");
  await remove(core, { ...call, body, headers: { ...call.headers, "content-type": "application/json" } });
  return { status: 201, body: JSON.stringify(CREATED) };
}

function guards(budget: Budget, pod: KubeObject): boolean {
  const wanted = Object.entries(budget.spec.selector?.matchLabels ?? {});
  return wanted.length > 0 && wanted.every(([key, value]) => pod.metadata.labels?.[key] === value);
}

function overBudget(budget: Budget): StatusError {
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {};
  const message = "Cannot evict pod as it would violate the pod's disruption budget.";
  const cause = `The disruption budget ${budget.metadata.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  return new StatusError(429, "TooManyRequests", message, { causes: [{ reason: "DisruptionBudget", message: cause }] });
}

const HOUR_S = 3600;
const SHORTEST_S = 600;

async function requestToken(core: Core, call: Call, tokens: ServiceAccountTokens): Promise<Reply> {
  const request = parseBody(call.body, call.headers["content-type"]) as KubeObject & {
    spec?: {
      audiences?: string[];
      expirationSeconds?: number;
      boundObjectRef?: { kind: string; apiVersion: string; name: string; uid: string };
    };
  };
  const account = findStored(core, call.kind, call.namespace, call.name);
  const seconds = request.spec?.expirationSeconds ?? HOUR_S;
  if (seconds < SHORTEST_S) {
    throw badRequest(
      `spec.expirationSeconds: Invalid value: ${seconds}: may not specify a duration less than 10 minutes`,
    );
  }
  const now = core.now();
  const expires = Math.floor(now.getTime() / 1000) + seconds;
  const audiences = request.spec?.audiences?.length ? request.spec.audiences : [tokens.issuer];
  const boundTo = request.spec?.boundObjectRef;
  const claims = { namespace: call.namespace, name: call.name, uid: account.uid, audiences, expires };
  const token = tokens.issue(boundTo ? { ...claims, boundTo } : claims, now);
  const expirationTimestamp = `${new Date(expires * 1000).toISOString().slice(0, 19)}Z`;
  const answer = {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { name: call.name, namespace: call.namespace, creationTimestamp: now.toISOString() },
    spec: { ...request.spec, audiences, expirationSeconds: seconds },
    status: { token, expirationTimestamp },
  };
  return { status: 201, body: JSON.stringify(answer) };
}

/** The namespace controller's last word: which finalizers are left. */
async function finalize(core: Core, call: Call): Promise<Reply> {
  const given = parseBody(call.body, call.headers["content-type"]) as KubeObject & { spec?: { finalizers?: string[] } };
  const live = objectOf(call.kind, findStored(core, call.kind, "", call.name));
  const next = structuredClone(live);
  next["spec"] = { ...(live["spec"] as object), finalizers: given.spec?.finalizers ?? [] };
  if (given.metadata?.resourceVersion) next.metadata.resourceVersion = given.metadata.resourceVersion;
  return { status: 200, body: JSON.stringify(await updateObject(core, call, live, next)) };
}
