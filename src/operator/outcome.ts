import { withFix } from "../api/protocol/status-message.ts";
import { reasonOf, type StatusReason } from "../api/protocol/status-reasons.ts";
import type { InstallationSpec } from "../api/resources/installation.ts";
import type { Problem } from "../api/validation/problem.ts";

/** Every part the operator looks after; each has one reconcile and one status object of this name. */
export const PARTS = ["network", "ippools", "apiserver", "flow-logs", "flow-ui", "service-proxy"] as const;
export type Part = (typeof PARTS)[number];

/**
 * What one look at a part came to: the only thing a reconcile returns. `status.ts` turns it into conditions, so that what was
 * said once cannot be overwritten by what is said later in the same pass.
 */
export type Outcome =
  /** `checked`: what was looked at, and on which nodes. */
  | ({ kind: "ready"; message: string; checked: readonly string[] } & Accepted)
  /** Not requested, and nothing of it is left: there is no status either. */
  | { kind: "absent" }
  /** An optional part that is not requested. */
  | { kind: "notInstalled"; message: string }
  | ({ kind: "progressing"; waitingFor: string; recheckMs?: number } & Accepted)
  /** `retry`: look again soon though nothing we watch may change. `available`: it concerns a part of the cluster, and the rest works. */
  | ({ kind: "degraded"; reason: string; message: string; retry: boolean; available?: boolean } & Accepted);

/** What was accepted of the installation, kept in its status. */
interface Accepted {
  accepted?: { computed: InstallationSpec; dataplaneFallback: string | undefined };
}

export const ready = (message: string, checked: readonly string[]): Outcome => ({ kind: "ready", message, checked });
export const absent = (): Outcome => ({ kind: "absent" });
export const notInstalled = (message: string): Outcome => ({ kind: "notInstalled", message });
export const progressing = (waitingFor: string, recheckMs?: number): Outcome => ({
  kind: "progressing",
  waitingFor,
  ...(recheckMs === undefined ? {} : { recheckMs }),
});
/** A reason is a declared one, or the code of a problem or an error. */
export const degraded = (reason: StatusReason | { code: string }, message: string, retry = false): Outcome => ({
  kind: "degraded",
  reason: typeof reason === "string" ? reason : reasonOf(reason.code),
  message,
  retry,
});

/** Some nodes or pods do not get what they ask for; the others do. */
export const degradedInPart = (reason: StatusReason, message: string): Outcome => ({
  ...{ kind: "degraded", reason, message, retry: false },
  available: true,
});

/** What the user asked for cannot be done: named by its first problem, with every fix. Nothing was changed. `retry` as in an outcome. */
export function refused(problems: readonly Problem[], retry = false): Outcome {
  const [first] = problems;
  if (!first) throw new TypeError("a refusal needs a reason");
  const told = problems.slice(0, MOST_REPORTED).map(sentence);
  const more = problems.length - told.length;
  return degraded({ code: first.code }, [...told, ...(more > 0 ? [`And ${more} more.`] : [])].join(" "), retry);
}

const MOST_REPORTED = 3;

function sentence({ message, fix, code }: Problem): string {
  return withFix(`${message}`, `${fix} (vendorctl explain ${code})`);
}
