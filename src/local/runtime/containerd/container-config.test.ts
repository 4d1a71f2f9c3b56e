import { describe, expect, it } from "vitest";
import type { Container, Pod } from "../../controllers/workload-types.ts";
import { ContainerStartError } from "../node-runtime.ts";
import { containerConfig, sandboxConfig } from "./container-config.ts";

const IMAGE = {
  is: "container",
  reference: "vendor:1",
  user: "10001:10001",
  command: ["vendor"],
  args: ["node"],
} as const;

function podWith(container: Partial<Container>, spec: Record<string, unknown> = {}): Pod {
  const metadata = { name: "web", namespace: "shop", uid: "u1" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata,
    spec: { ...spec, containers: [{ name: "main", ...container }] },
  } as Pod;
}

function configOf(container: Partial<Container>, spec: Record<string, unknown> = {}, limits = true) {
  const pod = podWith(container, spec);
  const only = pod.spec.containers[0] as Container;
  return containerConfig({ pod, container: only, image: IMAGE, attempt: 2, env: { A: "b" }, mounts: [], limits });
}

const securityOf = (container: Partial<Container>, spec: Record<string, unknown> = {}) =>
  configOf(container, spec).linux?.security_context;

describe("a container", () => {
  it("is named, logged and started as a kubelet does", () => {
    expect(configOf({ workingDir: "/srv" })).toMatchObject({
      metadata: { name: "main", attempt: 2 },
      image: { image: "vendor:1" },
      command: ["vendor"],
      args: ["node"],
      working_dir: "/srv",
      envs: [{ key: "A", value: "b" }],
      log_path: "main/2.log",
    });
  });

  it("has the user of its pod unless it has one of its own, and the pod's groups", () => {
    const pod = { securityContext: { runAsUser: 1, runAsGroup: 2, fsGroup: 3, supplementalGroups: [4] } };
    expect(securityOf({}, pod)).toMatchObject({
      run_as_user: { value: 1 },
      run_as_group: { value: 2 },
      supplemental_groups: [4, 3],
    });
    expect(securityOf({ securityContext: { runAsUser: 0 } }, pod)).toMatchObject({ run_as_user: { value: 0 } });
    expect(securityOf({})).toMatchObject({ run_as_user: undefined, run_as_group: undefined });
  });

  it("has the rights it asks for", () => {
    const securityContext = {
      ...{ privileged: false, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] },
    };
    expect(securityOf({ securityContext })).toMatchObject({
      capabilities: { add_capabilities: ["NET_ADMIN"], drop_capabilities: ["ALL"] },
      readonly_rootfs: true,
      no_new_privs: true,
    });
    expect(securityOf({ securityContext: { privileged: true } })).toMatchObject({
      privileged: true,
      no_new_privs: false,
    });
  });

  it.each([
    ["none", undefined, { profile_type: 1 }],
    ["the runtime's", { type: "RuntimeDefault" }, { profile_type: 0 }],
    [
      "one of the node",
      { type: "Localhost", localhostProfile: "a.json" },
      { profile_type: 2, localhost_ref: "/var/lib/kubelet/seccomp/a.json" },
    ],
  ])("has the filter of system calls its pod asks for: %s", (_, seccompProfile, wanted) => {
    expect(securityOf({}, { securityContext: { seccompProfile } })?.seccomp).toEqual(wanted);
  });

  it("has its limits where the node can hold it to them", () => {
    const resources = { requests: { cpu: "100m", memory: "1Gi" }, limits: { cpu: "1500m", memory: "64Mi" } };
    expect(configOf({ resources }).linux?.resources).toEqual({
      ...{ cpu_shares: 102, cpu_period: 100_000, cpu_quota: 150_000, memory_limit_in_bytes: 64 * 2 ** 20 },
    });
    expect(configOf({}).linux?.resources).toEqual({ cpu_shares: 2 });
    expect(configOf({ resources }, {}, false).linux?.resources).toBeUndefined();
  });

  it.each([
    [
      "its own user is root",
      { securityContext: { runAsUser: 0, runAsNonRoot: true } },
      IMAGE.user,
      /breaks non-root policy/,
    ],
    ["the image's is root", { securityContext: { runAsNonRoot: true } }, "", /image will run as root/],
    ["the image's is a name", { securityContext: { runAsNonRoot: true } }, "node", /non-numeric user \(node\)/],
  ])("that must not be root is refused when %s", (_, container, user, words) => {
    const pod = podWith(container);
    const only = pod.spec.containers[0] as Container;
    const make = () =>
      containerConfig({
        pod,
        container: only,
        image: { ...IMAGE, user },
        attempt: 0,
        env: {},
        mounts: [],
        limits: true,
      });
    expect(make).toThrow(ContainerStartError);
    expect(make).toThrow(words);
  });
});

describe("a sandbox", () => {
  it("is privileged as soon as one container is, and in the node's namespaces where the pod says so", () => {
    const pod = podWith({ securityContext: { privileged: true } }, { hostNetwork: true, hostPID: true });
    expect(sandboxConfig(pod, "node-1", 1)).toMatchObject({
      metadata: { name: "web", namespace: "shop", uid: "u1", attempt: 1 },
      hostname: "",
      log_directory: "/var/log/pods/shop_web_u1",
      linux: { security_context: { privileged: true, namespace_options: { network: 2, pid: 2, ipc: 0 } } },
    });
    const plain = sandboxConfig(podWith({}), "web", 0);
    expect(plain.linux?.security_context).toMatchObject({
      privileged: false,
      namespace_options: { network: 0, pid: 1, ipc: 0 },
    });
    expect(plain.hostname).toBe("web");
  });

  it("has the host ports, the name servers and the settings of its pod", () => {
    const ports = [{ containerPort: 53, hostPort: 5353, protocol: "UDP" }, { containerPort: 80 }];
    const dnsConfig = { nameservers: ["10.0.0.1"], options: [{ name: "ndots", value: "2" }] };
    const pod = podWith({ ports }, { dnsConfig, securityContext: { sysctls: [{ name: "net.a", value: "1" }] } });
    expect(sandboxConfig(pod, "web", 0)).toMatchObject({
      port_mappings: [{ protocol: 1, container_port: 53, host_port: 5353 }],
      dns_config: { servers: ["10.0.0.1"], options: ["ndots:2"] },
      linux: { sysctls: { "net.a": "1" } },
    });
  });
});
