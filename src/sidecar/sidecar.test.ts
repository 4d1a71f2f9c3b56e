import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkRequest } from "../../test/sidecar/check-requests.ts";
import { openPodSocket } from "../agent/policy-sync/pod-socket.ts";
import { syncMethod } from "../agent/policy-sync/sync-method.ts";
import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import { POLICY_SYNC, POLICY_SYNC_METHOD } from "../api/protocol/policy-sync.ts";
import { createCalculator } from "../calc/calculator.ts";
import { ModelCopy } from "../calc/model-copy.ts";
import { podPolicy } from "../calc/policy/pod-policy.ts";
import { systemClock } from "../kit/clock.ts";
import { type GrpcClient, grpcClient } from "../kit/grpc/grpc-client.ts";
import { grpcServer, streaming } from "../kit/grpc/grpc-server.ts";
import { decode, int, text } from "../kit/grpc/protobuf.ts";
import { openLog } from "../kit/log.ts";
import { listenAtSocket } from "../kit/unix-socket.ts";
import { AUTHORIZATION_METHODS, CHECK_REQUEST, CHECK_RESPONSE } from "./authorization-messages.ts";
import { sidecarProgram } from "./program.ts";

const STORED = `${vendorNames.groups.stored.group}/${vendorNames.groups.stored.version}`;

function pod(name: string, address: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "shop", labels: { app: name } },
    spec: { nodeName: "node-a", serviceAccountName: name, containers: [] },
    status: { phase: "Running", podIPs: [{ ip: address }] },
  };
}

function policy(...ingress: object[]): KubeObject {
  const spec = { tier: "default", selector: "app == 'cart'", ingress };
  return { apiVersion: STORED, kind: "NetworkPolicy", metadata: { name: "default.cart", namespace: "shop" }, spec };
}

const READERS = {
  action: "Allow",
  protocol: "TCP",
  source: { serviceAccounts: { names: ["web"] } },
  http: { methods: ["GET"], paths: [{ prefix: "/items" }] },
};

/** What the agent calculates for the pod `shop/cart`. */
class Agent {
  readonly #calculator = createCalculator("node-a", vendorNames);
  readonly #model = new ModelCopy();
  readonly #listeners = new Set<() => void>();

  constructor(...objects: KubeObject[]) {
    const account = (name: string) => ({
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name, namespace: "shop" },
    });
    this.set(
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
      ...["cart", "web", "other"].map(account),
      pod("cart", "10.0.0.5"),
      pod("web", "10.0.0.6"),
      ...objects,
    );
  }

  set(...objects: KubeObject[]): void {
    for (const object of objects) this.#calculator.set(object);
    const delta = this.#calculator.takeDelta();
    if (delta) this.#model.apply(delta);
    for (const listener of this.#listeners) listener();
  }

  inSync(): this {
    this.#calculator.inSync();
    this.set();
    return this;
  }

  readonly source = {
    policy: () => (this.#model.inSync ? podPolicy(this.#model, "shop/cart") : undefined),
    onChange: (listener: () => void) => {
      this.#listeners.add(listener);
      return () => void this.#listeners.delete(listener);
    },
  };
}

describe("the sidecar of application layer policy", () => {
  let directory = "";
  let client: GrpcClient;
  const ends: (() => unknown)[] = [];
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "sidecar-"));
    const stop = new AbortController();
    const env = { POLICY_SOCKET: join(directory, "socket"), LISTEN_SOCKET: join(directory, "shared/policy.sock") };
    const log = await openLog({ level: "error", format: "json", write: () => undefined });
    const world = { env, log, signal: stop.signal, transport: none, listen: none };
    const done = sidecarProgram(world);
    client = grpcClient(env.LISTEN_SOCKET);
    ends.push(
      () => rmSync(directory, { recursive: true }),
      () => done,
      () => stop.abort(),
      () => client.close(),
    );
    await until(() => existsSync(env.LISTEN_SOCKET));
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  const none = () => {
    throw new Error("a sidecar has no business there");
  };
  const until = async (is: () => boolean | Promise<boolean>) => {
    while (!(await is())) await new Promise((resolve) => setImmediate(resolve));
  };
  const serve = async (agent: Agent) => {
    const socket = await openPodSocket(join(directory, "socket"), agent.source, systemClock);
    ends.push(() => socket.close());
    return socket;
  };
  const ask = async (
    method: string,
    path: string,
    {
      account,
      source = "10.0.0.6",
      api = AUTHORIZATION_METHODS[0] as string,
    }: { account?: string; source?: string; api?: string } = {},
  ) => {
    const request = { http: { method, path }, ...(account !== undefined && { sourceAccount: account }) };
    const packet = {
      ipVersion: 4,
      protocol: 6,
      source,
      sourcePort: 40_000,
      destination: "10.0.0.5",
      destinationPort: 80,
      request,
    } as const;
    const { status } = await client.call(
      api,
      [CHECK_REQUEST, CHECK_RESPONSE],
      decode(CHECK_REQUEST, checkRequest(packet)),
      5_000,
    );
    return status?.code === 0 ? "allow" : status?.code === 14 ? "not yet" : "deny";
  };
  const isReady = () => existsSync(join(directory, "shared/ready"));

  it("denies until it is in sync: also while the agent is there, but has not listed the cluster's objects", async () => {
    expect(await ask("GET", "/items")).toBe("not yet");
    const agent = new Agent(policy(READERS));
    await serve(agent);
    expect(await ask("GET", "/items")).toBe("not yet");
    expect(isReady()).toBe(false);
    agent.inSync();
    await until(isReady);
    expect(await ask("GET", "/items")).toBe("allow");
  });

  it("asks methods, paths, proved accounts and addresses, in each version of the proxy's API", async () => {
    await serve(new Agent(policy(READERS)).inSync());
    await until(isReady);
    for (const api of AUTHORIZATION_METHODS) {
      expect(await ask("GET", "/items/7?all=1", { account: "shop/web", api })).toBe("allow");
      expect(await ask("POST", "/items/7", { account: "shop/web", api })).toBe("deny");
      expect(await ask("GET", "/orders", { account: "shop/web", api })).toBe("deny");
    }
    expect(await ask("GET", "/items/../orders", { account: "shop/web" })).toBe("deny");
    expect(await ask("GET", "/items", { account: "shop/other" })).toBe("deny");
    expect(await ask("GET", "/items", { account: "elsewhere/web" })).toBe("deny");
    expect(await ask("GET", "/items", { account: "shop/web", source: "10.0.0.9" })).toBe("deny");
    expect(await ask("GET", "/items", { source: "::ffff:10.0.0.6" })).toBe("allow");
  });

  it("follows changes of policy, pods and accounts", async () => {
    const agent = new Agent(policy(READERS)).inSync();
    await serve(agent);
    await until(isReady);
    agent.set(policy({ ...READERS, http: { methods: ["PUT"] } }));
    await until(async () => (await ask("PUT", "/x")) === "allow");
    expect(await ask("GET", "/items")).toBe("deny");
    agent.set(pod("web", "10.0.0.7"));
    await until(async () => (await ask("PUT", "/x", { source: "10.0.0.7" })) === "allow");
    expect(await ask("PUT", "/x")).toBe("deny");
  });

  it("answers by the last policy while the agent is away, and by no other before the next is in sync", async () => {
    const agent = new Agent(policy(READERS)).inSync();
    const socket = await serve(agent);
    await until(isReady);
    socket.close();
    expect(await ask("GET", "/items")).toBe("allow");
    const restarted = new Agent(policy());
    await serve(restarted);
    for (let times = 0; times < 50; times++) expect(await ask("GET", "/items")).toBe("allow");
    restarted.inSync();
    await until(async () => (await ask("GET", "/items")) === "deny");
    expect(isReady()).toBe(true);
  });

  it("messages of the release that had version 1 first are understood by both sides", async () => {
    const recorded = JSON.parse(readFileSync("test/sidecar/recorded-v1.json", "utf8")) as {
      request: string;
      updates: string[];
    };
    // Its agent with this sidecar, and what a later agent may add: fields that are not known, and a criterion that is not.
    const [first = "", then = ""] = recorded.updates;
    const { server, close } = grpcServer({
      [POLICY_SYNC_METHOD]: streaming(POLICY_SYNC[0], { ...POLICY_SYNC[1], later: text(99) }, (_, answers) => {
        answers.send({ ...decode(POLICY_SYNC[1], Buffer.from(first, "base64")), later: "x" });
        answers.send({ ...decode(POLICY_SYNC[1], Buffer.from(then, "base64")), later: "x" });
      }),
    });
    await listenAtSocket(server, join(directory, "socket"), 0o600);
    ends.push(close);
    await until(async () => (await ask("PUT", "/x")) === "allow");
    expect(await ask("GET", "/items")).toBe("deny");
    close();
    // Its sidecar with this agent.
    const updates: unknown[] = [];
    const own = grpcServer({ [POLICY_SYNC_METHOD]: syncMethod(new Agent(policy(READERS)).inSync().source) });
    await listenAtSocket(own.server, join(directory, "other"), 0o600);
    const old = grpcClient(join(directory, "other"));
    ends.push(own.close, () => old.close());
    const stop = new AbortController();
    const request = decode(POLICY_SYNC[0], Buffer.from(recorded.request, "base64"));
    await old
      .stream(
        POLICY_SYNC_METHOD,
        POLICY_SYNC,
        request,
        (update) => {
          updates.push(update);
          stop.abort();
        },
        stop.signal,
      )
      .catch(() => undefined);
    expect(updates[0]).toEqual(decode(POLICY_SYNC[1], Buffer.from(first, "base64")));
  });

  it("a rule with a criterion that the sidecar does not know denies; a version that it does not know gives no policy", async () => {
    const update = (version: number, rule: object) => ({
      ...{ version, fresh: true, in_sync: true },
      content: Buffer.from(
        JSON.stringify({
          ingress: { tiers: [{ name: "default", endAction: "deny", policies: ["p"] }], profiles: [] },
          policies: { set: [{ id: "p", ingress: [{ id: "r", action: "allow", ...rule }] }], remove: [] },
          profiles: { set: [], remove: [] },
          ipSets: { set: [], change: [], remove: [] },
          accountSets: { set: [], change: [], remove: [] },
        }),
      ),
    });
    let sent = update(1, {});
    const { server, close } = grpcServer({
      [POLICY_SYNC_METHOD]: streaming(...POLICY_SYNC, (_, answers) => {
        answers.send(sent);
        resend = () => answers.end();
      }),
    });
    let resend = () => {};
    await listenAtSocket(server, join(directory, "socket"), 0o600);
    ends.push(close);
    await until(async () => (await ask("GET", "/")) === "allow");
    sent = update(1, { httpHeaders: ["x"] });
    resend();
    await until(async () => (await ask("GET", "/")) === "deny");
    sent = update(2, {});
    resend();
    await until(async () => (await ask("GET", "/")) === "not yet");
  });

  it("an agent says to a sidecar of versions that it does not speak which ones it speaks", async () => {
    await serve(new Agent().inSync());
    const later = grpcClient(join(directory, "socket"));
    ends.push(() => later.close());
    const tables = [{ oldest: int(1), newest: int(2) }, POLICY_SYNC[1]] as const;
    const asked = later.stream(
      POLICY_SYNC_METHOD,
      tables,
      { oldest: 7, newest: 9 },
      () => undefined,
      new AbortController().signal,
    );
    await expect(asked).rejects.toThrow("this agent speaks versions 1 to 1 of the policy sync API, the sidecar 7 to 9");
  });
});
