import { createSocket } from "node:dgram";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, describe, expect, it } from "vitest";
import { agentMetrics } from "../../src/agent/agent-metrics.ts";
import { cniService } from "../../src/agent/cni-service.ts";
import type { PodNetwork } from "../../src/agent/pods/pod-network.ts";
import { syncMethod } from "../../src/agent/policy-sync/sync-method.ts";
import { serveProbe } from "../../src/agent/probe/probe-server.ts";
import { refusedPods } from "../../src/agent/refused-pods.ts";
import { POLICY_SYNC, POLICY_SYNC_METHOD, POLICY_SYNC_VERSIONS } from "../../src/api/protocol/policy-sync.ts";
import { PodPolicyCopy, type PodPolicyDelta } from "../../src/calc/policy/pod-policy.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { grpcClient } from "../../src/kit/grpc/grpc-client.ts";
import { frame } from "../../src/kit/grpc/grpc-frames.ts";
import { grpcServer, unary } from "../../src/kit/grpc/grpc-server.ts";
import { decode, encode } from "../../src/kit/grpc/protobuf.ts";
import { healthServer } from "../../src/kit/health-server.ts";
import { requestLine, serveLines } from "../../src/kit/line-socket.ts";
import { silentLog } from "../../src/kit/log.ts";
import { createMetrics } from "../../src/kit/metrics.ts";
import { listenAtSocket } from "../../src/kit/unix-socket.ts";
import { AUTHORIZATION_METHODS, CHECK_REQUEST, CHECK_RESPONSE } from "../../src/sidecar/authorization-messages.ts";
import { authorize } from "../../src/sidecar/authorize.ts";
import { checkRequest } from "../sidecar/check-requests.ts";
import { startApi } from "../support/api.ts";
import { frontProxy, requestDirectly, startV3Api } from "../support/v3-api.ts";
import { FUZZ_TIMEOUT_MS, fuzz, printTotal } from "./fuzz.ts";
import { type RawPort, rawPort, rawPortAt } from "./raw-http.ts";

const options = { timeout: FUZZ_TIMEOUT_MS };
afterAll(printTotal);
const head = "host: x\r\nconnection: close\r\n";
const json = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a":"b"}},"data":{"x":"y"}}';
const withBody = (method: string, target: string, type: string, body: string) =>
  `${method} ${target} HTTP/1.1\r\n${head}content-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

/** Requests as the API servers know them, to be broken. */
const API_REQUESTS = [
  `GET /api/v1/namespaces/default/configmaps?labelSelector=a%3Db&limit=1&continue=x HTTP/1.1\r\n${head}\r\n`,
  `GET /apis/vendor.io/v3/networkpolicies?fieldSelector=metadata.name%3Da HTTP/1.1\r\n${head}authorization: Bearer x\r\n\r\n`,
  withBody("POST", "/api/v1/namespaces/default/configmaps", "application/json", json),
  withBody(
    "PATCH",
    "/api/v1/namespaces/default/configmaps/a",
    "application/json-patch+json",
    '[{"op":"add","path":"/data/z","value":"1"}]',
  ),
  withBody("PATCH", "/api/v1/namespaces/default/configmaps/a", "application/merge-patch+json", '{"data":{"x":null}}'),
  withBody("PATCH", "/api/v1/namespaces/default/configmaps/a?fieldManager=f", "application/apply-patch+yaml", json),
  withBody(
    "PATCH",
    "/api/v1/namespaces/default/pods/a",
    "application/strategic-merge-patch+json",
    '{"spec":{"containers":[{"$patch":"delete"}]}}',
  ),
  `DELETE /api/v1/namespaces/default/configmaps/a HTTP/1.1\r\n${head}\r\n`,
];

/** A connection of HTTP/2 with one call, as a client writes it. */
function callBytes(method: string, message: Buffer): Buffer {
  const block = Buffer.concat([
    Buffer.from([0x83, 0x86, 0x01, 1]),
    Buffer.from("x"),
    Buffer.from([0x04, method.length + 1]),
    Buffer.from(`/${method}`),
  ]);
  const http2Frame = (type: number, flags: number, stream: number, content: Buffer) => {
    const begin = Buffer.alloc(9);
    begin.writeUIntBE(content.length, 0, 3);
    begin.writeUInt8(type, 3);
    begin.writeUInt8(flags, 4);
    begin.writeUInt32BE(stream, 5);
    return Buffer.concat([begin, content]);
  };
  const [settings, headers, data] = [4, 1, 0];
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    http2Frame(settings, 0, 0, Buffer.alloc(0)),
    http2Frame(headers, 4, 1, block),
    http2Frame(data, 1, 1, frame(message)),
  ]);
}

/** Sends, then ends its side: what a client does that has nothing more to say. Resolves when the server has closed. */
async function exchange(port: RawPort, input: Buffer): Promise<void> {
  const socket = await port.open(input);
  await new Promise<void>((resolve) => {
    socket.once("close", () => resolve()).resume();
    socket.end();
  });
}

/** A broken request may be a watch, or one whose body never comes: its client leaves. */
async function sendAndLeave(port: RawPort, input: Buffer): Promise<void> {
  const socket = await port.open(input);
  await new Promise<void>((resolve) => {
    socket.once("data", () => socket.destroy()).once("close", () => resolve());
    socket.end();
    const timer = setTimeout(() => socket.destroy(), 100);
    socket.once("close", () => clearTimeout(timer));
  });
}

describe("every listener", () => {
  it("health and metrics port", options, async () => {
    const server = healthServer({ ready: { a: () => undefined }, metrics: () => "x 1\n" });
    const port = await rawPort(server);
    const samples = [
      `GET /readyz?verbose HTTP/1.1\r\n${head}\r\n`,
      withBody("POST", "/metrics", "text/plain", "x"),
      "GET // HTTP/1.0\r\n\r\n",
    ];
    await fuzz("health port", samples, (input) => exchange(port, input));
    expect(await port.send(samples[0] as string)).toMatch(/^HTTP\/1\.1 200/);
    server.close();
  });

  it("CNI socket", options, async () => {
    const directory = mkdtempSync(join(tmpdir(), "fuzz-cni-"));
    const path = join(directory, "cni.sock");
    const pods = { add: async () => ({}), remove: async () => {}, check: () => {}, removeOthers: async () => {} };
    const answer = cniService({
      pods: pods as unknown as PodNetwork,
      refused: refusedPods(systemClock),
      notReady: () => undefined,
      metrics: agentMetrics(createMetrics()),
      clock: systemClock,
      log: silentLog,
    });
    const server = await serveLines(path, answer);
    const request = {
      command: "ADD",
      containerId: "c",
      netns: "/n",
      ifname: "eth0",
      args: { K8S_POD_NAME: "a" },
      config: {},
    };
    await fuzz(
      "CNI socket",
      [`${JSON.stringify(request)}\n`, '{"command":"GC","config":{}}\n', "null\n"],
      async (input) => {
        const socket = connect(path).on("error", () => {});
        socket.end(input);
        await new Promise((resolve) => socket.once("close", resolve).resume());
      },
    );
    expect(await requestLine(path, { ...request, command: "STATUS" }, 5_000)).toEqual({});
    await server.close();
    rmSync(directory, { recursive: true });
  });

  it("gRPC sockets: of the agent in a pod's volume, and of the sidecar", options, async () => {
    const directory = mkdtempSync(join(tmpdir(), "fuzz-grpc-"));
    const path = join(directory, "socket");
    const check = AUTHORIZATION_METHODS[0];
    const allowAll: PodPolicyDelta = {
      ingress: { tiers: [], profiles: ["p"] },
      policies: { set: [], remove: [] },
      profiles: { set: [{ id: "p", ingress: [{ id: "r", action: "allow" }] }], remove: [] },
      ipSets: { set: [], change: [], remove: [] },
      accountSets: { set: [], change: [], remove: [] },
    };
    const policy = new PodPolicyCopy();
    policy.apply(allowAll);
    const source = { policy: () => undefined, onChange: () => () => undefined };
    const { server, close } = grpcServer(
      {
        [POLICY_SYNC_METHOD]: syncMethod(source),
        [check]: unary(CHECK_REQUEST, CHECK_RESPONSE, (request) => authorize(policy, request)),
      },
      { callMs: 100 },
    );
    await listenAtSocket(server, path, 0o600);
    const peer = { ipVersion: 4, protocol: 6, source: "10.0.0.1", sourcePort: 1, destination: "10.0.0.2" } as const;
    const request = { http: { method: "GET", path: "/" }, sourceAccount: "a/b" };
    const asked = checkRequest({ ...peer, destinationPort: 2, request });
    const version = encode(POLICY_SYNC[0], { ...POLICY_SYNC_VERSIONS, release: "v1" });
    await fuzz(
      "gRPC sockets",
      [asked, version, callBytes(check, asked), callBytes(POLICY_SYNC_METHOD, version)],
      async (input, random) => {
        // Half of them within a good call, so that the message is read, too.
        const method = random.of([check, POLICY_SYNC_METHOD]);
        const bytes = random.chance(50) ? input : callBytes(method, input.subarray(0, 16_000));
        const socket = connect(path).on("error", () => {});
        const timer = setTimeout(() => socket.destroy(), 20);
        socket.write(bytes);
        await new Promise((resolve) => socket.once("close", resolve).resume());
        clearTimeout(timer);
      },
    );
    const client = grpcClient(path);
    const answer = await client.call(check, [CHECK_REQUEST, CHECK_RESPONSE], decode(CHECK_REQUEST, asked), 5_000);
    expect(answer.status?.code).toBe(0);
    client.close();
    close();
    rmSync(directory, { recursive: true });
  });

  it("probe server", options, async () => {
    const server = await serveProbe({ tcp: [0], udp: [0] }, "fuzz");
    const port = rawPortAt(server.ports.tcp[0] as number);
    const udp = createSocket("udp4");
    await fuzz("probe server", ["hello\n", Buffer.alloc(1_400, 1)], async (input, random) => {
      if (random.chance(50)) return await exchange(port, input);
      await new Promise((resolve) =>
        udp.send(input.subarray(0, 1_400), server.ports.udp[0] as number, "127.0.0.1", resolve),
      );
    });
    const answered = new Promise<void>((resolve) => {
      udp.on("message", (message) => message.includes("still there") && resolve());
    });
    udp.send("still there", server.ports.udp[0] as number, "127.0.0.1");
    await answered;
    udp.close();
    await server.close();
  });

  it("embedded API server", options, async () => {
    const api = await startApi();
    const port = rawPortAt(Number(new URL(api.url).port));
    await fuzz("embedded API server", API_REQUESTS, (input) => sendAndLeave(port, input));
    expect((await api.get("/readyz")).status).toBe(200);
    await api.close();
  });

  it("aggregated API", options, async () => {
    const api = await startV3Api();
    const { host, port } = api.v3.address();
    const keys = { cert: frontProxy.certificate, key: frontProxy.key, ca: api.v3.authority };
    const user = "x-remote-user: admin\r\nx-remote-group: system:masters\r\nx-remote-extra-%zz: a\r\n";
    const samples = API_REQUESTS.map((request) =>
      request.replace(head, head + user).replace("/api/v1/", "/apis/vendor.io/v3/"),
    );
    const plain = rawPortAt(port);
    await fuzz("aggregated API", samples, async (input, random) => {
      // Some without a handshake.
      if (random.chance(20)) return await sendAndLeave(plain, input);
      const socket = connectTls({ host, port, ...keys }).on("error", () => {});
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => socket.destroy(), 200);
        socket.once("secureConnect", () => socket.write(input));
        socket.once("data", () => socket.destroy());
        socket.once("close", () => {
          clearTimeout(timer);
          resolve();
        });
      });
    });
    expect((await requestDirectly(api.v3, "/livez")).text).toBe("ok");
    await api.close();
  });
});
