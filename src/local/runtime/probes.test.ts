import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../kit/clock.ts";
import { fakeClock } from "../../kit/fake-clock.ts";
import type { Container } from "../controllers/workload-types.ts";
import type { ContainerEvent } from "./node-runtime.ts";
import { watchProbes } from "./probes.ts";

/** A container whose commands end as the test says, and everything its probes made of it. */
function watched(container: Partial<Container>, { patient = true } = {}) {
  const clock = fakeClock();
  const over = new AbortController();
  const answers: Record<string, number> = {};
  const asked: string[] = [];
  const events: string[] = [];
  const report = (event: ContainerEvent) => events.push("probe" in event ? `${event.is} ${event.probe}` : event.is);
  void watchProbes({
    container: { name: "main", ...container },
    addressOf: () => undefined,
    exec: async ([name = ""]) => {
      asked.push(`${clock.now() / 1000} ${name}`);
      return { exitCode: answers[name] ?? 0, said: "" };
    },
    end: () => void events.push("ended"),
    report,
    patient,
    clock,
    signal: over.signal,
  });
  return { clock, over, answers, asked, events };
}

const probe = (name: string, timing = {}) => ({ exec: { command: [name] }, ...timing });

describe("probes", () => {
  it("without any a container is ready as soon as it runs", async () => {
    const { clock, events } = watched({});
    await clock.advance(0);
    expect(events).toEqual(["started", "ready"]);
  });

  it("readiness comes and goes by its thresholds, at its period, after its delay", async () => {
    const timing = { initialDelaySeconds: 3, periodSeconds: 2, failureThreshold: 2, successThreshold: 2 };
    const { clock, answers, asked, events } = watched({ readinessProbe: probe("ready", timing) });
    await clock.advance(6_000);
    expect(asked).toEqual(["3 ready", "5 ready"]);
    expect(events).toEqual(["started", "ready"]);
    answers["ready"] = 1;
    await clock.advance(4_000);
    expect(events.slice(2)).toEqual(["unhealthy Readiness", "unhealthy Readiness", "unready"]);
  });

  it("nothing else is asked before the start has succeeded", async () => {
    const { clock, answers, asked, events } = watched({
      startupProbe: probe("startup", { periodSeconds: 1, failureThreshold: 5 }),
      livenessProbe: probe("live"),
      readinessProbe: probe("ready"),
    });
    answers["startup"] = 1;
    await clock.advance(2_000);
    expect(new Set(asked.map((one) => one.split(" ")[1]))).toEqual(new Set(["startup"]));
    answers["startup"] = 0;
    await clock.advance(1_000);
    expect(events.slice(-2)).toEqual(["started", "ready"]);
  });

  it.each([
    ["startup", { startupProbe: probe("bad", { periodSeconds: 1, failureThreshold: 2 }) }],
    ["liveness", { livenessProbe: probe("bad", { periodSeconds: 1, failureThreshold: 2 }) }],
  ])("a container is ended once by its %s probe", async (name, container) => {
    const { clock, answers, asked, events } = watched(container);
    answers["bad"] = 1;
    await clock.advance(0);
    expect(events).not.toContain("ended");
    await clock.advance(10_000);
    expect(events.filter((event) => event === "ended")).toHaveLength(1);
    expect(events).toContain(`killing ${name}`);
    expect(asked).toHaveLength(2);
  });

  it("where a rollout must not take long, a container that is not ready is asked more often", async () => {
    const { clock, answers, asked, over } = watched({ readinessProbe: probe("ready") }, { patient: false });
    answers["ready"] = 1;
    await clock.advance(1_000);
    expect(asked.length).toBe(11);
    over.abort();
  });

  it("where a rollout must not take long, a container has all the time that its startup probe gives it", async () => {
    const startupProbe = probe("startup", { periodSeconds: 2, failureThreshold: 3 });
    const { clock, answers, asked, events } = watched({ startupProbe }, { patient: false });
    answers["startup"] = 1;
    await clock.advance(3_900);
    expect(asked.length).toBeGreaterThan(30);
    expect(events).not.toContain("ended");
    await clock.advance(200);
    expect(events.filter((event) => event === "ended")).toHaveLength(1);
  });

  it("ask by HTTP and by TCP, and say what went wrong", async () => {
    const server = createServer((request, answer) => {
      answer.statusCode = request.url === "/well" && request.headers["x-who"] === "kubelet" ? 204 : 503;
      answer.end();
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const { port } = server.address() as AddressInfo;
    const once = (readinessProbe: object) =>
      new Promise<string>((resolve) => {
        const over = new AbortController();
        void watchProbes({
          container: { name: "main", ports: [{ name: "web", containerPort: port }], readinessProbe },
          addressOf: (at, host = "127.0.0.1") => ({ host, port: at, connect: () => connect(at, host) }),
          report: (event) => {
            if (event.is === "started") return;
            over.abort();
            resolve(event.is === "unhealthy" ? event.why : event.is);
          },
          patient: true,
          clock: systemClock,
          signal: over.signal,
        });
      });
    const httpHeaders = [{ name: "X-Who", value: "kubelet" }];
    expect(await once({ httpGet: { path: "/well", port: "web", httpHeaders } })).toBe("ready");
    expect(await once({ httpGet: { path: "/well", port } })).toBe("HTTP probe failed with statuscode: 503");
    expect(await once({ tcpSocket: { port: "web" } })).toBe("ready");
    expect(await once({ tcpSocket: { port: "none" } })).toBe("couldn't find port: none");
    expect(await once({ grpc: { port } })).toBe("only httpGet, tcpSocket and exec are asked by these nodes");
    await new Promise((done) => server.close(done));
    expect(await once({ tcpSocket: { port } })).toContain("ECONNREFUSED");
    expect(await once({ exec: { command: ["true"] } })).toBe("commands cannot be run in this container");
  });
});
