import { get } from "node:http";
import { shellHealthAddress } from "../../../agent/config.ts";
import { errors } from "../../../agent/errors.ts";
import type { Session } from "../../session.ts";

/** A kubelet waits for a probe as long as the probe says; this only keeps a shell from waiting for ever. */
const TIMEOUT_MS = 10_000;

/** Asks the agent of this container, as its health server answers kubelets elsewhere. */
export async function nodeReady(session: Session): Promise<void> {
  const { status, body } = await ask(session.signal);
  if (status !== 200) throw errors.AGENT_NOT_READY(reasons(body));
  session.out("the agent of this node is ready\n");
}

function ask(signal: AbortSignal): Promise<{ status: number; body: string }> {
  const { host, port } = shellHealthAddress();
  return new Promise((resolve, reject) => {
    const silent = (error: Error) =>
      reject(errors.AGENT_NOT_READY(`${host}:${port} does not answer: ${error.message}`));
    const request = get({ host, port, path: "/readyz", timeout: TIMEOUT_MS, signal }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.on("timeout", () => request.destroy(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)));
    request.on("error", silent);
  });
}

/** `[-]model failed: waiting for ...` -> `waiting for ...`. */
function reasons(body: string): string {
  const failed = body.split("\n").flatMap((line) => /^\[-\]\S+ failed: (.*)$/.exec(line)?.[1] ?? []);
  return failed.join("; ") || body.trim();
}
