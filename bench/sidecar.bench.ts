import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPodSocket } from "../src/agent/policy-sync/pod-socket.ts";
import { vendorNames } from "../src/api/names.ts";
import type { KubeObject } from "../src/api/object.ts";
import { createCalculator } from "../src/calc/calculator.ts";
import { ModelCopy } from "../src/calc/model-copy.ts";
import { podPolicy } from "../src/calc/policy/pod-policy.ts";
import { systemClock } from "../src/kit/clock.ts";
import { grpcClient } from "../src/kit/grpc/grpc-client.ts";
import { openLog } from "../src/kit/log.ts";
import { AUTHORIZATION_METHODS, CHECK_REQUEST, CHECK_RESPONSE } from "../src/sidecar/authorization-messages.ts";
import { sidecarProgram } from "../src/sidecar/program.ts";
import type { Row } from "./run.ts";

const POLICIES = 50;
const PODS = 1_000;
const RATE = 2_000;
const SECONDS = 10;
const STORED = `${vendorNames.groups.stored.group}/${vendorNames.groups.stored.version}`;

/** How fast the sidecar of a pod with fifty policies answers: at a steady rate the time of each answer, and of its processor for each. */
export async function run(): Promise<Row[]> {
  if (process.env["SIDECAR_BENCH"]) return await sidecar();
  const directory = mkdtempSync(join(tmpdir(), "sidecar-bench-"));
  const model = modelOf();
  const source = { policy: () => podPolicy(model, "shop/cart"), onChange: () => () => undefined };
  const socket = await openPodSocket(join(directory, "socket"), source, systemClock);
  const env = { ...process.env, SIDECAR_BENCH: directory };
  const child = fork(process.argv[1] as string, { env, stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const message = () => new Promise<number>((resolve) => child.once("message", (value) => resolve(value as number)));
  await message();
  const client = grpcClient(join(directory, "shared/policy.sock"));
  const ask = () => client.call(AUTHORIZATION_METHODS[0], [CHECK_REQUEST, CHECK_RESPONSE], REQUEST, 10_000);
  for (let warm = 0; warm < 5_000; warm += 10) await Promise.all(Array.from({ length: 10 }, ask));
  const cpu = async () => {
    const answer = message();
    child.send("cpu");
    return answer;
  };
  const before = await cpu();
  const times = await atRate(ask);
  const used = (await cpu()) - before;
  client.close();
  socket.close();
  child.kill();
  rmSync(directory, { recursive: true });
  const sorted = times.sort((a, b) => a - b);
  return [
    {
      name: `answers at ${RATE}/s, ${POLICIES} policies: p50`,
      value: sorted[sorted.length >> 1] as number,
      unit: "ms",
    },
    { name: "p99", value: sorted[Math.floor(sorted.length * 0.99)] as number, unit: "ms" },
    { name: "processor time of the sidecar for each", value: used / times.length, unit: "ms" },
    { name: "so answers per second and core", value: (1_000 * times.length) / used, unit: "1/s" },
  ];
}

/** Sent when they are due, whether those before are answered or not. */
async function atRate(ask: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  const pending: Promise<void>[] = [];
  const began = performance.now();
  while (pending.length < RATE * SECONDS) {
    const due = Math.min(RATE * SECONDS, Math.floor(((performance.now() - began) * RATE) / 1_000));
    while (pending.length < due) {
      const sent = performance.now();
      pending.push(ask().then(() => void times.push(performance.now() - sent)));
    }
    // Not at every turn: a client that is always busy would take the sidecar's processor.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  return times;
}

/** The other process: the program, and its processor time when asked. */
async function sidecar(): Promise<never> {
  const directory = process.env["SIDECAR_BENCH"] as string;
  const env = { POLICY_SOCKET: join(directory, "socket"), LISTEN_SOCKET: join(directory, "shared/policy.sock") };
  const log = await openLog({ level: "error", format: "json", write: (line) => void process.stderr.write(line) });
  const none = () => {
    throw new Error("a sidecar has no business there");
  };
  void sidecarProgram({ env, log, signal: new AbortController().signal, transport: none, listen: none });
  const client = grpcClient(env.LISTEN_SOCKET);
  for (let code = -1; code !== 0; ) {
    const answer = await client
      .call(AUTHORIZATION_METHODS[0], [CHECK_REQUEST, CHECK_RESPONSE], REQUEST, 1_000)
      .catch(() => undefined);
    code = answer?.status?.code ?? -1;
  }
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) / 1_000);
  });
  process.send?.(0);
  return new Promise<never>(() => undefined);
}

const peer = (address: string, account: string) => ({
  address: { socket_address: { address, port_value: 80 } },
  principal: `spiffe://cluster.local/ns/shop/sa/${account}`,
});
const REQUEST = {
  attributes: {
    source: peer("10.0.3.231", "web"),
    destination: peer("10.0.0.5", "default"),
    request: { http: { method: "GET", path: "/items/4711?q=1" } },
  },
};

/** The last of the policies allows the request. */
function modelOf(): ModelCopy {
  const calculator = createCalculator("node-a", vendorNames);
  const pod = (name: string, ip: string, spec: object): KubeObject => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "shop", labels: { app: name } },
    spec: { nodeName: "node-a", containers: [], ...spec },
    status: { phase: "Running", podIPs: [{ ip }] },
  });
  const rule = (index: number) => ({
    action: "Allow",
    protocol: "TCP",
    source: { serviceAccounts: { names: ["web"] } },
    http: { methods: ["GET"], paths: [{ prefix: index === POLICIES - 1 ? "/items" : `/other-${index}` }] },
  });
  const objects: KubeObject[] = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
    ...["web", "default"].map((name) => ({
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name, namespace: "shop" },
    })),
    pod("cart", "10.0.0.5", {}),
    ...Array.from({ length: PODS }, (_, index) =>
      pod(`web-${index}`, `10.0.${index >> 8}.${index & 255}`, { serviceAccountName: "web" }),
    ).filter(({ metadata }) => metadata.name !== "web-5"),
    ...Array.from({ length: POLICIES }, (_, index) => ({
      apiVersion: STORED,
      kind: "NetworkPolicy",
      metadata: { name: `default.p${index}`, namespace: "shop" },
      spec: { tier: "default", order: index, selector: "app == 'cart'", ingress: [rule(index)] },
    })),
  ];
  for (const object of objects) calculator.set(object);
  calculator.inSync();
  const model = new ModelCopy();
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
  return model;
}
