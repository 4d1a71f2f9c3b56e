import { mkdtempSync, rmSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { POLICY_SYNC, POLICY_SYNC_METHOD, POLICY_SYNC_VERSIONS } from "../../api/protocol/policy-sync.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { podPolicy } from "../../calc/policy/pod-policy.ts";
import { fakeClock } from "../../kit/fake-clock.ts";
import { grpcClient } from "../../kit/grpc/grpc-client.ts";
import { frame } from "../../kit/grpc/grpc-frames.ts";
import { encode } from "../../kit/grpc/protobuf.ts";
import { openPodSocket } from "./pod-socket.ts";

const NOTHING = podPolicy(new ModelCopy(), undefined);

describe("a pod that floods the socket of its volume", () => {
  let path = "";
  let calculated = 0;
  const clock = fakeClock();
  const ends: (() => void)[] = [];
  beforeEach(async () => {
    const directory = mkdtempSync(join(tmpdir(), "pod-socket-"));
    path = join(directory, "socket");
    calculated = 0;
    const policy = () => {
      calculated++;
      return NOTHING;
    };
    const socket = await openPodSocket(path, { policy, onChange: () => () => undefined }, clock);
    ends.push(
      () => rmSync(directory, { recursive: true }),
      () => socket.close(),
    );
  });
  afterEach(() => {
    for (const end of ends.splice(0).reverse()) end();
  });

  /** As the sidecar: one call that stays. */
  const follow = () => {
    const client = grpcClient(path);
    const stop = new AbortController();
    ends.push(() => client.close());
    return new Promise<{ ended: Promise<unknown> }>((resolve, reject) => {
      const ended = client.stream(
        POLICY_SYNC_METHOD,
        POLICY_SYNC,
        { ...POLICY_SYNC_VERSIONS, release: "" },
        () => resolve({ ended }),
        stop.signal,
      );
      ended.catch(reject);
    });
  };
  const untilFollowed = async () => {
    while (!(await follow().catch(() => undefined))) await new Promise((resolve) => setImmediate(resolve));
  };
  const session = () => {
    const opened = connectHttp2("http://localhost", { createConnection: () => connect(path) });
    opened.on("error", () => undefined);
    ends.push(() => opened.destroy());
    return opened;
  };
  const isOver = (one: ClientHttp2Session) => one.destroyed || one.closed;
  const closed = (one: ClientHttp2Session) =>
    isOver(one) ? Promise.resolve() : new Promise<void>((resolve) => one.once("close", resolve));
  const request = frame(encode(POLICY_SYNC[0], POLICY_SYNC_VERSIONS));

  const FLOODS: Record<string, (one: ClientHttp2Session) => void> = {
    "by calls that it ends at once": (one) => {
      const stream = one.request({ ":method": "POST", ":path": `/${POLICY_SYNC_METHOD}` });
      stream.on("error", () => undefined);
      stream.end(request, () => stream.close());
    },
    "by calls of no method": (one) => {
      one
        .request({ ":method": "POST", ":path": "/x" })
        .on("error", () => undefined)
        .end();
    },
    "by pings": (one) => {
      one.ping(() => undefined);
    },
  };

  it.each(Object.entries(FLOODS))("%s loses its connection and waits; the sidecar's goes on", async (_, ask) => {
    const { ended } = await follow();
    let isFollowing = true;
    void ended
      .catch(() => undefined)
      .then(() => {
        isFollowing = false;
      });
    const flooding = session();
    await new Promise((resolve) => flooding.once("connect", resolve));
    for (let times = 0; !isOver(flooding); times++) {
      ask(flooding);
      if (times % 4 === 3) await new Promise((resolve) => setImmediate(resolve));
    }
    await closed(flooding);
    expect(calculated).toBeLessThan(60);
    expect(isFollowing).toBe(true);
    const waiting = session();
    await closed(waiting);
    await clock.advance(10_001);
    await untilFollowed();
  });
});
