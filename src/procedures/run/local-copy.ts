import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LAST_APPLIED } from "../last-applied.ts";

/**
 * The journal a second time, on the machine that runs vendorctl: for reading where the cluster has lost its own, or is lost itself.
 * What Secrets held is left out, because this file outlives the cluster's guard over it.
 */
export interface LocalCopy {
  write(run: string, name: string, value: unknown): void;
  /** What was written, unless something was left out of it; undefined where there is nothing, or not all. */
  read(run: string, name: string): unknown;
}

export function localCopyIn(directory: string, onError: (error: unknown) => void): LocalCopy {
  const folder = (run: string) => join(directory, "runs", run);
  let failed = false;
  return {
    write(run, name, value) {
      try {
        mkdirSync(folder(run), { recursive: true, mode: 0o700 });
        const file = join(folder(run), `${name}.json`);
        const { kept, complete } = withoutSecrets(value);
        // Renamed, so that a reader finds the old or the new, never half of one.
        writeFileSync(`${file}.new`, `${JSON.stringify({ complete, value: kept }, null, 1)}\n`, { mode: 0o600 });
        renameSync(`${file}.new`, file);
      } catch (error) {
        // The cluster has the journal; a full disk here must not stop the work there. Said once.
        if (!failed) onError(error);
        failed = true;
      }
    },
    read(run, name) {
      try {
        const { complete, value } = JSON.parse(readFileSync(join(folder(run), `${name}.json`), "utf8")) as {
          complete: boolean;
          value: unknown;
        };
        return complete ? value : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

function holdsSecret(text: unknown): boolean {
  return typeof text === "string" && /"kind"\s*:\s*"Secret"/.test(text);
}

/** Takes out what Secrets hold, wherever in a value they are. */
function withoutSecrets(value: unknown): { kept: unknown; complete: boolean } {
  let complete = true;
  const walk = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(walk);
    if (typeof inner !== "object" || inner === null) return inner;
    const isSecret = (inner as { kind?: unknown }).kind === "Secret";
    const entries = Object.entries(inner).filter(
      // The annotation of kubectl apply repeats the whole object as text.
      ([key, each]) =>
        !(isSecret && (key === "data" || key === "stringData")) && !(key === LAST_APPLIED && holdsSecret(each)),
    );
    if (entries.length < Object.keys(inner).length) complete = false;
    return Object.fromEntries(entries.map(([key, each]) => [key, walk(each)]));
  };
  return { kept: walk(value), complete };
}
