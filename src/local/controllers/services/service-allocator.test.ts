import { describe, expect, it } from "vitest";
import { StatusError } from "../../../api/status.ts";
import type { Service } from "../workload-types.ts";
import { ServiceAllocator } from "./service-allocator.ts";

const SINGLE = { clusterCidrs: ["10.96.0.0/16"] };
const DUAL = { clusterCidrs: ["10.96.0.0/16", "fd00:10:96::/112"] };

function service(spec: Partial<Service["spec"]> = {}, name = "web"): Service {
  const ports = [{ port: 80, protocol: "TCP" }];
  return { apiVersion: "v1", kind: "Service", metadata: { name, namespace: "default" }, spec: { ports, ...spec } };
}

function refusal(write: () => void): string {
  try {
    write();
  } catch (error) {
    if (error instanceof StatusError) return `${error.code} ${error.message}`;
    throw error;
  }
  return "accepted";
}

describe("the addresses of services", () => {
  it("gives every service its own address, families and policy", () => {
    const allocator = new ServiceAllocator([], SINGLE);
    const [a, b] = [service({}, "a"), service({}, "b")];
    allocator.allocate(a, undefined);
    allocator.allocate(b, undefined);
    expect(a.spec).toMatchObject({
      clusterIP: "10.96.1.1",
      clusterIPs: ["10.96.1.1"],
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
    });
    expect(b.spec.clusterIP).not.toBe(a.spec.clusterIP);
  });

  it("gives both families where the service and the cluster want them", () => {
    const allocator = new ServiceAllocator([], DUAL);
    const both = service({ ipFamilyPolicy: "PreferDualStack" });
    allocator.allocate(both, undefined);
    expect(both.spec.ipFamilies).toEqual(["IPv4", "IPv6"]);
    expect(both.spec.clusterIPs?.map((ip) => ip.includes(":"))).toEqual([false, true]);
    const six = service({ ipFamilies: ["IPv6"] });
    allocator.allocate(six, undefined);
    expect(six.spec.clusterIP).toMatch(/^fd00:10:96::/);
    const single = new ServiceAllocator([], SINGLE);
    expect(refusal(() => single.allocate(service({ ipFamilyPolicy: "RequireDualStack" }), undefined))).toBe(
      '422 Service "web" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
    );
  });

  it("refuses an address that is taken or of another range, in Kubernetes' words", () => {
    const allocator = new ServiceAllocator([service({ clusterIP: "10.96.0.10", clusterIPs: ["10.96.0.10"] })], SINGLE);
    const ask = (clusterIP: string) => refusal(() => allocator.allocate(service({ clusterIP }), undefined));
    expect(ask("10.96.0.10")).toBe(
      '422 Service "web" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: provided IP is already allocated',
    );
    expect(ask("10.1.0.1")).toContain(
      "the provided IP (10.1.0.1) is not in the valid range. The range of valid IPs is 10.96.0.0/16",
    );
  });

  it("gives a headless service families and no address", () => {
    const headless = service({ clusterIP: "None", clusterIPs: ["None"], selector: { app: "db" } });
    new ServiceAllocator([], DUAL).allocate(headless, undefined);
    expect(headless.spec).toMatchObject({ clusterIP: "None", clusterIPs: ["None"], ipFamilies: ["IPv4"] });
  });
});

describe("the node ports of services", () => {
  it("come from the range, shared by the protocols of one port", () => {
    const dns = service({
      type: "NodePort",
      ports: [
        { port: 53, protocol: "UDP" },
        { port: 53, protocol: "TCP" },
      ],
    });
    new ServiceAllocator([], SINGLE).allocate(dns, undefined);
    const [udp, tcp] = dns.spec.ports ?? [];
    expect(udp?.nodePort).toBe(tcp?.nodePort);
    expect(udp?.nodePort).toBeGreaterThanOrEqual(30000);
  });

  it("refuses a port that is taken or outside, in Kubernetes' words, and keeps nothing of a refused service", () => {
    const allocator = new ServiceAllocator([], SINGLE);
    const ask = (nodePort: number, clusterIP?: string) =>
      refusal(() =>
        allocator.allocate(service({ type: "NodePort", clusterIP, ports: [{ port: 80, nodePort }] }), undefined),
      );
    expect(ask(80, "10.96.0.20")).toBe(
      '422 Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
    );
    expect(ask(30080, "10.96.0.20")).toBe("accepted");
    expect(ask(30080)).toContain("Invalid value: 30080: provided port is already allocated");
  });

  it("adds a health check port where traffic stays local", () => {
    const lb = service({ type: "LoadBalancer", externalTrafficPolicy: "Local" });
    new ServiceAllocator([], SINGLE).allocate(lb, undefined);
    expect(lb.spec.healthCheckNodePort).toBeGreaterThanOrEqual(30000);
    expect(lb.spec.healthCheckNodePort).not.toBe(lb.spec.ports?.[0]?.nodePort);
  });
});

describe("the life of an allocation", () => {
  it("keeps what the server gave when a client replaces the service without it", () => {
    const allocator = new ServiceAllocator([], SINGLE);
    const first = service({ type: "NodePort" });
    allocator.allocate(first, undefined);
    const replaced = service({ type: "NodePort" });
    allocator.allocate(replaced, first);
    expect(replaced.spec).toEqual(first.spec);
  });

  it("drops the node ports of a service that becomes a plain one, and only when that is stored", () => {
    const allocator = new ServiceAllocator([], SINGLE);
    const before = service({ type: "NodePort", ports: [{ port: 80, nodePort: 30080 }] });
    allocator.allocate(before, undefined);
    const after = structuredClone(before);
    after.spec.type = "ClusterIP";
    allocator.allocate(after, before);
    expect(after.spec.ports?.[0]?.nodePort).toBeUndefined();
    const other = () => service({ type: "NodePort", ports: [{ port: 80, nodePort: 30080 }] }, "other");
    expect(refusal(() => allocator.allocate(other(), undefined))).toContain("already allocated");
    allocator.commit(after, before);
    expect(refusal(() => allocator.allocate(other(), undefined))).toBe("accepted");
  });

  it("leaks nothing in a dry run, and frees what a deleted service had", () => {
    const allocator = new ServiceAllocator([], { clusterCidrs: ["10.96.0.0/30"] });
    for (let i = 0; i < 10; i++) {
      const tried = service();
      allocator.allocate(tried, undefined);
      allocator.abandon(tried, undefined);
    }
    const [a, b] = [service({}, "a"), service({}, "b")];
    allocator.allocate(a, undefined);
    allocator.allocate(b, undefined);
    expect(refusal(() => allocator.allocate(service(), undefined))).toContain("range is full");
    allocator.release(a);
    expect(refusal(() => allocator.allocate(service(), undefined))).toBe("accepted");
  });
});
