import type { Transport } from "../api/transport.ts";
import type { ApiAddress } from "../cluster/api-server-hosts.ts";
import { deadline } from "../cluster/deadline.ts";
import type { Clock } from "../kit/clock.ts";

/** What came of asking at the address in the endpoint map. */
export interface ProbedEndpoint extends ApiAddress {
  /** Why the API server does not answer there; undefined: it does. */
  failure: string | undefined;
}

export interface EndpointProbe {
  /** Undefined while no address was asked at. */
  last(): ProbedEndpoint | undefined;
  /** The map may have changed: another address is asked at once. */
  changed(): void;
  /** Resolves when nothing is being asked. */
  settled(): Promise<void>;
  stop(): void;
}

export interface EndpointProbeOptions {
  /** The address in the map, as it is now. */
  address(): ApiAddress | undefined;
  transport(at: ApiAddress): Transport;
  clock: Clock;
  /** The answer is another than before. */
  onChange(): void;
}

const ANSWER_MS = 10_000;
const ASK_AGAIN_MS = 15_000;
const ASK_AFTER_FAILURE_MS = 3_000;
/** In a row: a server that restarts is back in a moment, and one failure counts for nothing. */
const FAILURES = 2;

/** Asks the API server at the address in the endpoint map, again and again: everything installed would depend on it. */
export function probeEndpoint({ address, transport, clock, onChange }: EndpointProbeOptions): EndpointProbe {
  const stopping = new AbortController();
  let last: ProbedEndpoint | undefined;
  let opened: (ApiAddress & { transport: Transport }) | undefined;
  let failures = 0;
  let asking: Promise<void> | undefined;
  let cancel = () => {};

  const wayTo = (at: ApiAddress): Transport => {
    if (!isSame(opened, at)) {
      opened?.transport.close();
      failures = 0;
      opened = { ...at, transport: transport(at) };
    }
    return opened!.transport;
  };

  const take = (at: ApiAddress, failure: string | undefined): void => {
    failures = failure === undefined ? 0 : failures + 1;
    if (failures > 0 && failures < FAILURES) return;
    const isNew = !isSame(last, at) || last?.failure !== failure;
    last = { ...at, failure };
    if (isNew) onChange();
  };

  const turn = async (): Promise<void> => {
    cancel();
    for (let at = address(); ; at = address()) {
      if (at === undefined) {
        last = undefined;
        return;
      }
      const failure = await ask(() => wayTo(at as ApiAddress), clock, stopping.signal);
      if (stopping.signal.aborted) return;
      take(at, failure);
      if (isSame(at, address())) {
        cancel = clock.setTimeout(begin, failure === undefined ? ASK_AGAIN_MS : ASK_AFTER_FAILURE_MS);
        return;
      }
    }
  };
  const begin = (): void => {
    asking ??= turn().finally(() => {
      asking = undefined;
    });
  };

  return {
    last: () => last,
    changed() {
      if (!isSame(last, address()) && !stopping.signal.aborted) begin();
    },
    settled: async () => await asking,
    stop() {
      cancel();
      stopping.abort();
      opened?.transport.close();
    },
  };
}

function isSame(a: ApiAddress | undefined, b: ApiAddress | undefined): boolean {
  return a?.host === b?.host && a?.port === b?.port;
}

const LOWEST_FAILURE = 500;

/** A refusal is an answer: whoever sent it is the API server. */
async function ask(open: () => Transport, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  const limit = deadline(clock, ANSWER_MS, signal);
  try {
    const { status, text } = await open().request({ method: "GET", path: "/version", signal: limit.signal });
    await text();
    return status >= LOWEST_FAILURE ? `HTTP ${status}` : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    limit.end();
  }
}
