import type { KubeObject, ResourceKind } from "../../../api/object.ts";
import { StatusError } from "../../../api/status.ts";
import { createInformer, type Informer } from "../../../cluster/informer.ts";
import type { Work } from "../../action.ts";
import { errors } from "../errors.ts";

/** A part of the cluster to look at: one object, or all that a selector finds. */
export interface Source {
  kind: ResourceKind;
  namespace?: string | undefined;
  name?: string;
  labelSelector?: string;
}

/** What one look came to. A string is what is still waited for, in words. */
export type Verdict = "done" | { waitingFor: string } | { hopeless: Error };

/**
 * Waits until a look at the objects is content: a look at every change, none in between. A server that cannot be reached for a
 * while is waited for; one that forbids looking is not. A wait for the same, in the same words, ends after `stallMs`.
 */
export async function awaitObjects(
  work: Work,
  sources: readonly Source[],
  look: (found: readonly KubeObject[][]) => Verdict,
): Promise<void> {
  let fail: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {});
  const informers = sources.map((source) => openInformer(work, source, fail));
  const stopped = () => fail(work.signal.reason ?? new DOMException("stopped", "AbortError"));
  work.signal.addEventListener("abort", stopped, { once: true });
  if (work.signal.aborted) stopped();
  const limit = stallLimit(work, fail);
  try {
    await Promise.race([Promise.all(informers.map(({ synced }) => synced)), failed]);
    await Promise.race([untilContent(work, informers, look, limit), failed]);
  } finally {
    limit.disarm();
    work.signal.removeEventListener("abort", stopped);
    await Promise.all(informers.map((informer) => informer.stop()));
  }
}

function openInformer(work: Work, source: Source, fail: (error: unknown) => void): Informer<KubeObject> {
  const { kind, namespace, name, labelSelector } = source;
  return createInformer<KubeObject>(work.client, kind, {
    clock: work.clock,
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
    onError: (error) => {
      if (error instanceof StatusError && (error.code === 401 || error.code === 403)) fail(error);
    },
  });
}

interface StallLimit {
  /** It waits for this from now on. */
  begin(what: string): void;
  disarm(): void;
}

function stallLimit({ clock, stallMs }: Work, fail: (error: unknown) => void): StallLimit {
  let disarm = (): void => {};
  return {
    begin(what) {
      disarm();
      if (stallMs === undefined) return;
      disarm = clock.setTimeout(() => fail(errors.STEP_STALLED(what, Math.round(stallMs / 60_000))), stallMs);
    },
    disarm: () => disarm(),
  };
}

function untilContent(
  work: Work,
  informers: readonly Informer<KubeObject>[],
  look: (found: readonly KubeObject[][]) => Verdict,
  limit: StallLimit,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    let said = "";
    const say = (what: string) => {
      said = what;
      work.waitingFor(what);
      limit.begin(what);
    };
    const judge = () => {
      const verdict = look(informers.map((informer) => informer.list()));
      if (verdict === "done") return resolve();
      if ("hopeless" in verdict) return reject(verdict.hopeless);
      if (verdict.waitingFor !== said) say(verdict.waitingFor);
    };
    for (const informer of informers) informer.onChange(judge);
    // Without any object there is no event.
    judge();
  });
}
