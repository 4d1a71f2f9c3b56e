import type { PageRuns } from "../../src/api/protocol/page-runs.ts";
import { type ApiRefusal, isRefusal, openPath } from "../api/flows-api.ts";

const ASKED_EVERY_MS = 15_000;
/** While one is running. */
const ASKED_OFTEN_MS = 2_000;

interface Follower {
  answered(runs: PageRuns): void;
  refused(why: ApiRefusal): void;
}

/** Asks for runs again and again, until what it returns is called. */
export function followRuns(token: string, { answered, refused }: Follower): () => void {
  const left = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ask = async () => {
    let isRunning = false;
    try {
      const response = await openPath("/runs", token, left.signal);
      const answer = (await response.json()) as PageRuns;
      if (left.signal.aborted) return;
      isRunning = answer.runs.some(({ outcome, isCutOff }) => outcome === "running" && !isCutOff);
      answered(answer);
    } catch (error) {
      if (left.signal.aborted) return;
      refused(isRefusal(error) ? error : { status: 0, reason: "Unreadable", message: String(error) });
    }
    timer = setTimeout(() => void ask(), isRunning ? ASKED_OFTEN_MS : ASKED_EVERY_MS);
  };
  void ask();
  return () => {
    left.abort();
    clearTimeout(timer);
  };
}
