import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { humanDuration } from "./age.ts";
import { columnsOf } from "./columns.ts";

const NOW = new Date("2026-01-02T00:00:00Z");

/** A row as `kubectl get` prints it; wide columns after a bar. */
function row(group: string, kind: string, object: object): string {
  const columns = columnsOf(group, kind);
  const cells = (priority: number) =>
    columns.filter((column) => column.priority === priority).map((c) => String(c.value(object as KubeObject, NOW)));
  const wide = cells(1);
  return cells(0).join("  ") + (wide.length > 0 ? `  |  ${wide.join("  ")}` : "");
}

const metadata = { name: "a", creationTimestamp: "2026-01-01T23:55:00Z" };
const running = (name: string, more = {}) => ({ name, ready: true, restartCount: 0, state: { running: {} }, ...more });

describe("ages", () => {
  it("are as long as they need to be", () => {
    const day = 86400;
    const ages = [5, 119, 120, 605, 3 * 3600, 3 * 3600 + 60, 47 * 3600, 3 * day, 3 * day + 3600, 400 * day, 800 * day];
    expect(ages.map(humanDuration).join(" ")).toBe("5s 119s 2m 10m 3h 3h1m 47h 3d 3d1h 400d 2y70d");
  });
});

describe("kubectl get pods", () => {
  const pod = (spec: object, status: object, meta = {}) =>
    row("", "Pod", { metadata: { ...metadata, ...meta }, spec, status });
  const one = { containers: [{ name: "c" }], nodeName: "n1" };

  it("shows a running pod and where it runs", () => {
    const status = { phase: "Running", podIP: "10.0.0.1", containerStatuses: [running("c")] };
    expect(pod(one, status)).toBe("a  1/1  Running  0  5m  |  10.0.0.1  n1  <none>  <none>");
  });

  it("shows a pod nobody has placed yet", () => {
    expect(pod({ containers: [{ name: "c" }] }, { phase: "Pending" })).toBe(
      "a  0/1  Pending  0  5m  |  <none>  <none>  <none>  <none>",
    );
  });

  it("says why a container does not run, and when it last tried", () => {
    const crashing = {
      name: "c",
      restartCount: 3,
      state: { waiting: { reason: "CrashLoopBackOff" } },
      lastState: { terminated: { exitCode: 1, finishedAt: "2026-01-01T23:59:00Z" } },
    };
    expect(pod(one, { phase: "Running", containerStatuses: [crashing] })).toContain(
      "0/1  CrashLoopBackOff  3 (60s ago)",
    );
  });

  it("counts init containers, and names the one that fails", () => {
    const spec = { ...one, initContainers: [{ name: "x" }, { name: "y" }] };
    const done = { name: "x", state: { terminated: { exitCode: 0 } } };
    const waits = { phase: "Pending", initContainerStatuses: [done, { name: "y", state: { running: {} } }] };
    expect(pod(spec, waits)).toContain("0/1  Init:1/2  0");
    const fails = { phase: "Pending", initContainerStatuses: [{ name: "x", state: { terminated: { exitCode: 2 } } }] };
    expect(pod(spec, fails)).toContain("0/1  Init:ExitCode:2");
  });

  it("tells a finished pod from one that is being stopped", () => {
    const ended = {
      phase: "Succeeded",
      containerStatuses: [{ name: "c", state: { terminated: { reason: "Completed" } } }],
    };
    expect(pod(one, ended)).toContain("0/1  Completed");
    const leaving = { phase: "Running", containerStatuses: [running("c")] };
    expect(pod(one, leaving, { deletionTimestamp: "2026-01-02T00:00:10Z" })).toContain("1/1  Terminating");
  });
});

describe("kubectl get", () => {
  it("shows nodes with roles, addresses and what they run", () => {
    const node = {
      metadata: { ...metadata, labels: { "node-role.kubernetes.io/control-plane": "" } },
      spec: { unschedulable: true },
      status: {
        conditions: [{ type: "Ready", status: "True" }],
        addresses: [{ type: "InternalIP", address: "192.0.2.1" }],
        nodeInfo: {
          kubeletVersion: "v1.36.0",
          osImage: "Debian",
          kernelVersion: "6.1",
          containerRuntimeVersion: "c://2",
        },
      },
    };
    expect(row("", "Node", node)).toBe(
      "a  Ready,SchedulingDisabled  control-plane  5m  v1.36.0  |  192.0.2.1  <none>  Debian  6.1  c://2",
    );
  });

  it("shows services with their ports, and whether an outside address is still missing", () => {
    const service = {
      metadata,
      spec: {
        type: "LoadBalancer",
        clusterIP: "10.96.0.1",
        selector: { app: "web" },
        ports: [{ port: 80, nodePort: 30080, protocol: "TCP" }],
      },
    };
    expect(row("", "Service", service)).toBe("a  LoadBalancer  10.96.0.1  <pending>  80:30080/TCP  5m  |  app=web");
  });

  it("shows workloads with their progress", () => {
    const template = { spec: { containers: [{ name: "c", image: "i:1" }], nodeSelector: { os: "linux" } } };
    const selector = { matchLabels: { app: "web" } };
    const deployment = {
      metadata,
      spec: { replicas: 3, selector, template },
      status: { readyReplicas: 2, updatedReplicas: 3 },
    };
    expect(row("apps", "Deployment", deployment)).toBe("a  2/3  3  0  5m  |  c  i:1  app=web");
    const daemonSet = { metadata, spec: { selector, template }, status: { desiredNumberScheduled: 3, numberReady: 1 } };
    expect(row("apps", "DaemonSet", daemonSet)).toBe("a  3  0  1  0  0  os=linux  5m  |  c  i:1  app=web");
    const job = {
      metadata,
      spec: { completions: 1, selector, template },
      status: {
        succeeded: 1,
        startTime: "2026-01-01T23:55:00Z",
        completionTime: "2026-01-01T23:55:09Z",
        conditions: [{ type: "Complete", status: "True" }],
      },
    };
    expect(row("batch", "Job", job)).toBe("a  Complete  1/1  9s  5m  |  c  i:1  app=web");
  });

  it("shows what a name and an age cannot say, and those two for any other kind", () => {
    expect(row("", "Secret", { metadata, type: "Opaque", data: { a: "", b: "" } })).toBe("a  Opaque  2  5m");
    expect(
      row("", "Event", {
        metadata,
        type: "Normal",
        reason: "Started",
        message: "m",
        lastTimestamp: metadata.creationTimestamp,
        involvedObject: { kind: "Pod", name: "p" },
      }),
    ).toContain("5m  Normal  Started  pod/p  m");
    const endpoints = [{ addresses: ["10.0.0.1"] }, { addresses: ["10.0.0.2"] }];
    expect(
      row("discovery.k8s.io", "EndpointSlice", { metadata, addressType: "IPv4", ports: [{ port: 80 }], endpoints }),
    ).toBe("a  IPv4  80  10.0.0.1,10.0.0.2  5m");
    expect(row("example.io", "Whatever", { metadata })).toBe("a  5m");
  });
});
