import type { Call, Reply } from "../../apiserver/call.ts";
import { isTrue } from "../../apiserver/request-info.ts";
import { CodedError } from "../../kit/errors.ts";
import type { ExecSession } from "../runtime/node-runtime.ts";
import type { SpdyStream } from "./spdy-connection.ts";
import { spdyUpgrade } from "./upgrade.ts";

/** Those in which the end of a command is sent as a Status, newest first. */
const PROTOCOLS = ["v4.channel.k8s.io"];

export interface ExecRequest {
  command: readonly string[];
  tty: boolean;
}

/** `kubectl exec`: the client opens a stream for each thing it wants to hear or say, and one for how it ended. */
export function podExec(call: Call, start: (request: ExecRequest) => Promise<ExecSession>): Reply {
  const asked = (name: string) => isTrue(call.query.get(name) ?? "false");
  const tty = asked("tty");
  const expected = ["error", ...["stdin", "stdout", "stderr"].filter(asked), ...(tty ? ["resize"] : [])];
  const request = { command: call.query.getAll("command"), tty };
  return spdyUpgrade(call, PROTOCOLS, (connection, _protocol, onStream) => {
    const streams = new Map<string, SpdyStream>();
    onStream((stream) => {
      streams.set(stream.headers["streamtype"] ?? "", stream);
      if (!expected.every((type) => streams.has(type))) return;
      void run(streams, () => start(request), connection.closed).then(() => connection.close());
    });
  });
}

async function run(
  streams: ReadonlyMap<string, SpdyStream>,
  start: () => Promise<ExecSession>,
  gone: Promise<void>,
): Promise<void> {
  const error = streams.get("error") as SpdyStream;
  try {
    const session = await start();
    void gone.then(() => session.kill());
    streams.get("stdin")?.pipe(session.stdin);
    const [out, err] = [streams.get("stdout"), streams.get("stderr")];
    if (out) session.stdout.pipe(out, { end: false });
    else session.stdout.resume();
    if (err) session.stderr.pipe(err, { end: false });
    else session.stderr.resume();
    const code = await session.exited;
    await finished(error, statusOf(code));
    await Promise.all([out, err].map((stream) => stream && ended(stream)));
  } catch (failure) {
    const message = failure instanceof CodedError ? failure.message : String(failure);
    await finished(error, { status: "Failure", reason: "InternalError", code: 500, message });
  }
}

function statusOf(code: number): object {
  if (code === 0) return { status: "Success" };
  return {
    status: "Failure",
    reason: "NonZeroExitCode",
    message: `command terminated with non-zero exit code: exit status ${code}`,
    details: { causes: [{ reason: "ExitCode", message: String(code) }] },
  };
}

function finished(stream: SpdyStream, status: object): Promise<void> {
  const text = JSON.stringify({ metadata: {}, apiVersion: "v1", kind: "Status", ...status });
  return new Promise((resolve) => stream.end(text, () => resolve()));
}

function ended(stream: SpdyStream): Promise<void> {
  return new Promise((resolve) => stream.end(() => resolve()));
}
