import type { Names } from "../api/names.ts";
import type { ResourceKind } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import type { Client, WatchOptions } from "../cluster/client.ts";
import { isNotFound, isUnreachable } from "../cluster/failures.ts";
import { DAEMON_SETS, DEPLOYMENTS } from "../cluster/kinds.ts";
import { sleep, systemClock } from "../kit/clock.ts";
import { statusKind } from "./status-tree.ts";

const AGAIN_MS = 2000;

/** Yields once at the start and then whenever something may have changed; changes between two reads are one. Ends with the signal. */
export async function* statusEvents(client: Client, names: Names, signal: AbortSignal): AsyncGenerator<void> {
  const bell = createBell(signal);
  const { system, operator, orchestratorSystem } = names.namespaces;
  const watched: [ResourceKind, WatchOptions][] = [
    [statusKind(names), {}],
    [DAEMON_SETS, { namespace: system }],
    [DAEMON_SETS, { namespace: orchestratorSystem }],
    [DEPLOYMENTS, { namespace: operator }],
  ];
  for (const [kind, options] of watched) void follow(client, kind, { ...options, signal }, bell.ring);
  yield;
  while (await bell.rung()) yield;
}

/** Watches until the signal; what is not there yet may come, and a server that went away comes back. */
async function follow(
  client: Client,
  kind: ResourceKind,
  options: WatchOptions & { signal: AbortSignal },
  ring: (error?: unknown) => void,
): Promise<void> {
  const { signal } = options;
  while (!signal.aborted) {
    try {
      for await (const _event of client.watch(kind, options)) ring();
    } catch (error) {
      if (signal.aborted) return;
      const passing = isNotFound(error) || isUnreachable(error) || (error instanceof StatusError && error.code >= 409);
      if (!passing) return ring(error);
    }
    await sleep(systemClock, AGAIN_MS, signal);
    ring();
  }
}

function createBell(signal: AbortSignal) {
  let waiting: (() => void) | undefined;
  let pending = false;
  let failure: unknown;
  const wake = () => {
    waiting?.();
    waiting = undefined;
  };
  signal.addEventListener("abort", wake, { once: true });
  return {
    ring(error?: unknown): void {
      pending = true;
      failure ??= error;
      wake();
    },
    /** True for a change, false when it is over. */
    async rung(): Promise<boolean> {
      if (!pending && !signal.aborted) await new Promise<void>((resolve) => (waiting = resolve));
      pending = false;
      if (failure !== undefined) throw failure;
      return !signal.aborted;
    },
  };
}
