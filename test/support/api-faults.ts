import type { Incoming, Reply, Sink } from "../../src/apiserver/call.ts";
import type { Handler } from "../../src/apiserver/http.ts";

/**
 * What an API server does to its clients: `silent` answers nothing and its watches end, `expired` ends every watch with 410 at once, so
 * that everything is listed again and again, `slowMs` answers that late.
 */
export type ApiFault = "none" | "silent" | "expired" | { slowMs: number };

export interface ApiFaults {
  front(handler: Handler): Handler;
  set(fault: ApiFault): void;
  /** Requests that a fault has met since the last `set`. */
  met(): number;
}

const GONE = {
  ...{ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code: 410, reason: "Expired" },
  message: "too old resource version",
};

export function apiFaults(): ApiFaults {
  let fault: ApiFault = "none";
  let met = 0;
  let over: () => void = () => {};
  let ended = Promise.resolve();
  const streams = new Set<Sink>();

  const handle = async (handler: Handler, incoming: Incoming): Promise<Reply> => {
    if (fault !== "none") met++;
    const isWatch = /[?&]watch=(1|true)/.test(incoming.search);
    // The server reads a request as it is when it gets to it, so a write that its client gave up meanwhile is not done.
    while (fault === "silent") {
      await Promise.race([ended, departed(incoming.signal)]);
      if (incoming.signal.aborted) return { status: 503, body: "" };
    }
    if (typeof fault === "object")
      await departed(AbortSignal.any([incoming.signal, AbortSignal.timeout(fault.slowMs)]));
    if (fault === "expired" && isWatch) return expired(met);
    const reply = await handler.handle(incoming);
    const { stream } = reply;
    if (!isWatch || !stream) return reply;
    return {
      ...reply,
      stream(sink) {
        streams.add(sink);
        sink.signal.addEventListener("abort", () => streams.delete(sink), { once: true });
        stream(sink);
      },
    };
  };

  return {
    front: (handler) => ({ handle: (incoming) => handle(handler, incoming) }),
    set(next) {
      fault = next;
      met = 0;
      over();
      ended = new Promise((resolve) => {
        over = resolve;
      });
      if (next !== "silent" && next !== "expired") return;
      for (const sink of streams) sink.end();
      streams.clear();
    },
    met: () => met,
  };
}

/** In both forms: as the answer, and as the first event of the stream. */
function expired(count: number): Reply {
  if (count % 2 === 0) return { status: 410, body: JSON.stringify(GONE) };
  const headers = { "content-type": "application/json" };
  return { status: 200, headers, body: `${JSON.stringify({ type: "ERROR", object: GONE })}\n` };
}

function departed(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
