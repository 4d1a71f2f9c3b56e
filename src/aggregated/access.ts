import { StatusError } from "../api/status.ts";
import type { Transport } from "../api/transport.ts";
import type { Attributes } from "../apiserver/auth/policy-rule.ts";
import type { UserInfo } from "../apiserver/call.ts";
import { statusError } from "../cluster/failures.ts";
import type { Clock } from "../kit/clock.ts";

const ALLOWED_FOR_MS = 5_000;
const DENIED_FOR_MS = 1_000;
const MAX_KEPT = 4_096;

interface Kept {
  answer: Promise<boolean>;
  /** Milliseconds; until it is known, as long as it takes. */
  until: number;
}

/**
 * May this user do this? The main API server is asked, and its answer kept for a moment: a list of a thousand policies in three tiers
 * asks a handful of questions. Cluster administrators are not asked about, so that they can mend a cluster whose authorization is broken.
 */
export class Access {
  readonly #mainApi: Transport;
  readonly #clock: Clock;
  readonly #asked: () => void;
  readonly #kept = new Map<string, Kept>();

  constructor(mainApi: Transport, clock: Clock, asked: () => void = () => {}) {
    this.#mainApi = mainApi;
    this.#clock = clock;
    this.#asked = asked;
  }

  async allows(user: UserInfo, attributes: Attributes): Promise<boolean> {
    if (user.groups.includes("system:masters")) return true;
    const spec = specOf(user, attributes);
    const key = JSON.stringify(spec);
    const known = this.#kept.get(key);
    if (known && known.until > this.#clock.now()) return await known.answer;
    const kept: Kept = { answer: this.#ask(spec), until: Number.POSITIVE_INFINITY };
    this.#remember(key, kept);
    try {
      const allowed = await kept.answer;
      kept.until = this.#clock.now() + (allowed ? ALLOWED_FOR_MS : DENIED_FOR_MS);
      return allowed;
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
  }

  #remember(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }

  async #ask(spec: object): Promise<boolean> {
    this.#asked();
    try {
      const response = await this.#mainApi.request({
        method: "POST",
        path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        headers: { accept: "application/json", "content-type": "application/json" },
        body: JSON.stringify({ apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec }),
      });
      const text = await response.text();
      if (response.status >= 400) throw statusError(response.status, text);
      return (JSON.parse(text) as { status?: { allowed?: boolean } }).status?.allowed === true;
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new StatusError(503, "ServiceUnavailable", `the access review failed: ${why}`);
    }
  }
}

function specOf(user: UserInfo, attributes: Attributes): object {
  const who = {
    user: user.name,
    groups: user.groups,
    ...(user.uid && { uid: user.uid }),
    ...(user.extra && { extra: user.extra }),
  };
  if (!attributes.resource) {
    const { path, verb } = attributes;
    return { ...who, nonResourceAttributes: { path, verb } };
  }
  const { verb, group, version, plural: resource, subresource, namespace, name } = attributes;
  return { ...who, resourceAttributes: { verb, group, version, resource, subresource, namespace, name } };
}
