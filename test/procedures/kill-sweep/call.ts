import type { ApiRequest } from "../../../src/api/transport.ts";
import type { RunRecord } from "../../../src/procedures/run/run-record.ts";

/** A call of vendorctl, named so that the same call of another process, or of another run, has the same name. */
export interface Call {
  name: string;
  /** False where the server only answers: no cluster is different after it. */
  isWrite: boolean;
  /** The record of a run, where this call writes one. */
  record?: WrittenRecord;
}

export interface WrittenRecord {
  heading: RunRecord["heading"];
  outcome: RunRecord["outcome"];
  /** How far each step is. */
  steps: string;
}

export type CallNamer = (request: ApiRequest) => Call;

/**
 * Names the calls of one process. A write is known by how far the journal was when it came, what it was and the how-many-eth of its kind
 * there: a process that resumes says the same names for what it does again, and new ones for what nobody did before it.
 */
export function nameCalls(found?: WrittenRecord): CallNamer {
  const isUnfinished = found?.outcome === "running" || found?.outcome === "stopped";
  let far = found && isUnfinished ? inShort(found) : "";
  let since = new Map<string, number>();
  return (request) => {
    const body = parse(request.body);
    const subject = nameless(`${request.path}${request.method === "POST" ? `/${body?.metadata?.name ?? ""}` : ""}`);
    const what = `${request.method} ${subject}`;
    if (!changesSomething(request)) return { name: what, isWrite: false };
    // Taken and renewed at any time, for the same reason: one death at it is as good as another.
    if (subject.endsWith("/leases/vendorctl")) {
      return { name: `the lease is ${body?.spec?.holderIdentity ? "taken" : "given back"}`, isWrite: true };
    }
    const record = recordIn(body);
    // Who resumes first writes its own name under what is there.
    if (record && inShort(record) === far) return { name: `${what} again`, isWrite: true, record };
    const times = (since.get(what) ?? 0) + 1;
    since.set(what, times);
    const name = [far, what, record ? inShort(record) : times > 1 ? String(times) : ""].filter(Boolean).join(" ");
    if (record) {
      far = inShort(record);
      since = new Map();
    }
    return { name, isWrite: true, ...(record ? { record } : {}) };
  };
}

/** Questions are asked with POST, too, and rehearsals with PATCH. */
function changesSomething({ method, path, query }: ApiRequest): boolean {
  const isQuestion = /^\/apis\/(authorization|authentication)\.k8s\.io\//.test(path);
  return method !== "GET" && query?.["dryRun"] === undefined && !isQuestion;
}

interface Body {
  metadata?: { name?: string; labels?: Record<string, string> };
  spec?: { holderIdentity?: string };
  data?: Record<string, string>;
}

function parse(body: unknown): Body | undefined {
  try {
    return JSON.parse(String(body)) as Body;
  } catch {
    return undefined;
  }
}

/** Without what is new with every run. */
const nameless = (path: string) =>
  path
    .replace(/vendorctl-run-[a-z-]+-[0-9a-f]{8}-[0-9a-z]+/, "vendorctl-run")
    .replace(/vendorctl-owner-references-\d+/, "vendorctl-owner-references");

function recordIn(body: Body | undefined): WrittenRecord | undefined {
  if (body?.metadata?.labels?.["procedures.vendor.io/part"] !== "record") return undefined;
  const text = Buffer.from(body.data?.["record"] ?? "", "base64").toString();
  const { heading, outcome, steps } = JSON.parse(text) as RunRecord;
  return { heading, outcome, steps: steps.map(({ state }) => LETTERS[state]).join("") };
}

const LETTERS = { pending: ".", intended: "i", applied: "a", confirmed: "c", skipped: "s", undone: "u" } as const;

const inShort = ({ heading, outcome, steps }: WrittenRecord) => `[${heading} ${outcome} ${steps}]`;
