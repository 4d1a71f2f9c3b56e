import { quantityValue } from "../../../apiserver/kubernetes/quantity.ts";
import type { Sent } from "../../../kit/grpc/protobuf.ts";
import type { Container, Pod } from "../../controllers/workload-types.ts";
import type { FrameMount } from "../netns/container-script.ts";
import { ContainerStartError } from "../node-runtime.ts";
import type { ContainerImage } from "./container-images.ts";
import {
  type CONTAINER_CONFIG,
  NAMESPACE,
  PROPAGATION,
  PROTOCOL,
  type SANDBOX_CONFIG,
  SECURITY_PROFILE,
} from "./cri-messages.ts";

/** Pure: a pod as a kubelet asks its container runtime for it. */

export type SandboxConfig = Sent<typeof SANDBOX_CONFIG>;
type ContainerConfig = Sent<typeof CONTAINER_CONFIG>;

interface SecurityContext {
  runAsUser?: number;
  runAsGroup?: number;
  runAsNonRoot?: boolean;
  seccompProfile?: { type: keyof typeof SECURITY_PROFILE; localhostProfile?: string };
}

interface PodSecurityContext extends SecurityContext {
  fsGroup?: number;
  supplementalGroups?: number[];
  sysctls?: { name: string; value: string }[];
}

interface ContainerSecurityContext extends SecurityContext {
  privileged?: boolean;
  allowPrivilegeEscalation?: boolean;
  readOnlyRootFilesystem?: boolean;
  capabilities?: { add?: string[]; drop?: string[] };
}

export const POD_UID_LABEL = "io.kubernetes.pod.uid";
const PROFILES = "/var/lib/kubelet/seccomp";

export function podLogDirectory({ metadata }: Pod): string {
  return `/var/log/pods/${metadata.namespace}_${metadata.name}_${metadata.uid}`;
}

export function containerLogPath({ name }: Container, attempt: number): string {
  return `${name}/${attempt}.log`;
}

export function sandboxConfig(pod: Pod, hostname: string, attempt: number): SandboxConfig {
  const { name, namespace = "", uid = "" } = pod.metadata;
  const { sysctls = [] } = podSecurity(pod);
  const isPrivileged = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].some(
    (container) => securityOf(container).privileged,
  );
  return {
    metadata: { name, namespace, uid, attempt },
    hostname: pod.spec.hostNetwork ? "" : hostname,
    log_directory: podLogDirectory(pod),
    dns_config: dnsOf(pod),
    port_mappings: portsOf(pod),
    labels: { "io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace, [POD_UID_LABEL]: uid },
    linux: {
      security_context: {
        namespace_options: namespacesOf(pod),
        privileged: isPrivileged,
        seccomp: { profile_type: SECURITY_PROFILE.RuntimeDefault },
      },
      sysctls: Object.fromEntries(sysctls.map((one) => [one.name, one.value])),
    },
  };
}

export interface ContainerChoice {
  pod: Pod;
  container: Container;
  image: Extract<ContainerImage, { is: "container" }>;
  attempt: number;
  env: Readonly<Record<string, string>>;
  mounts: readonly FrameMount[];
  /** Whether the node can hold processes to limits. */
  limits: boolean;
}

/** Throws a `ContainerStartError` where a kubelet refuses to create it. */
export function containerConfig({
  pod,
  container,
  image,
  attempt,
  env,
  mounts,
  limits,
}: ContainerChoice): ContainerConfig {
  const own = securityOf(container);
  const whole = podSecurity(pod);
  const user = own.runAsUser ?? whole.runAsUser;
  const group = own.runAsGroup ?? whole.runAsGroup;
  const groups = [...(whole.supplementalGroups ?? []), ...(whole.fsGroup === undefined ? [] : [whole.fsGroup])];
  if (own.runAsNonRoot ?? whole.runAsNonRoot) refuseRoot(container, user, image);
  return {
    metadata: { name: container.name, attempt },
    image: { image: image.reference },
    command: image.command,
    args: image.args,
    working_dir: container["workingDir"] as string | undefined,
    envs: Object.entries(env).map(([key, value]) => ({ key, value })),
    mounts: mounts.map(({ from, to, readOnly, propagation }) => ({
      container_path: to,
      host_path: from,
      readonly: readOnly,
      propagation: PROPAGATION[propagation],
    })),
    labels: { "io.kubernetes.container.name": container.name, [POD_UID_LABEL]: pod.metadata.uid ?? "" },
    log_path: containerLogPath(container, attempt),
    linux: {
      resources: limits ? resourcesOf(container) : undefined,
      security_context: {
        capabilities: {
          add_capabilities: own.capabilities?.add ?? [],
          drop_capabilities: own.capabilities?.drop ?? [],
        },
        privileged: own.privileged,
        namespace_options: namespacesOf(pod),
        run_as_user: user === undefined ? undefined : { value: user },
        // The runtime takes a group only with a user; without one the image's own group is used.
        run_as_group: user === undefined || group === undefined ? undefined : { value: group },
        readonly_rootfs: own.readOnlyRootFilesystem,
        supplemental_groups: groups,
        no_new_privs: own.allowPrivilegeEscalation === false,
        seccomp: profileOf(own.seccompProfile ?? whole.seccompProfile),
      },
    },
  };
}

function securityOf(container: Container): ContainerSecurityContext {
  return (container["securityContext"] as ContainerSecurityContext | undefined) ?? {};
}

function podSecurity(pod: Pod): PodSecurityContext {
  return (pod.spec["securityContext"] as PodSecurityContext | undefined) ?? {};
}

function refuseRoot({ name }: Container, user: number | undefined, image: { user: string }): void {
  const where = `container: ${name}`;
  if (user === 0)
    throw new ContainerStartError("environment", `container's runAsUser breaks non-root policy (${where})`);
  if (user !== undefined) return;
  const [own = ""] = image.user.split(":");
  if (own === "" || own === "0" || own === "root")
    throw new ContainerStartError("environment", `container has runAsNonRoot and image will run as root (${where})`);
  if (!/^\d+$/.test(own)) {
    const why = `container has runAsNonRoot and image has non-numeric user (${own}), cannot verify user is non-root`;
    throw new ContainerStartError("environment", `${why} (${where})`);
  }
}

function namespacesOf({ spec }: Pod): { network: number; pid: number; ipc: number } {
  const pid = spec["hostPID"] ? NAMESPACE.node : spec["shareProcessNamespace"] ? NAMESPACE.pod : NAMESPACE.container;
  return {
    network: spec.hostNetwork ? NAMESPACE.node : NAMESPACE.pod,
    pid,
    ipc: spec["hostIPC"] ? NAMESPACE.node : NAMESPACE.pod,
  };
}

/** Without a profile a kubelet asks for none, unless it is configured otherwise. */
function profileOf(profile: SecurityContext["seccompProfile"]): { profile_type: number; localhost_ref?: string } {
  if (!profile) return { profile_type: SECURITY_PROFILE.Unconfined };
  const { type, localhostProfile } = profile;
  return {
    profile_type: SECURITY_PROFILE[type],
    ...(localhostProfile !== undefined && { localhost_ref: `${PROFILES}/${localhostProfile}` }),
  };
}

/** Only what the pod itself says: there is no name server of the cluster to point to. */
function dnsOf({ spec }: Pod): SandboxConfig["dns_config"] {
  const dns = spec["dnsConfig"] as
    | { nameservers?: string[]; searches?: string[]; options?: { name: string; value?: string }[] }
    | undefined;
  if (!dns?.nameservers?.length) return undefined;
  const options = (dns.options ?? []).map(({ name, value }) => (value === undefined ? name : `${name}:${value}`));
  return { servers: dns.nameservers, searches: dns.searches ?? [], options };
}

function portsOf({ spec }: Pod): NonNullable<SandboxConfig["port_mappings"]> {
  if (spec.hostNetwork) return [];
  return spec.containers.flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort, containerPort, protocol = "TCP" }) =>
      hostPort === undefined
        ? []
        : [{ protocol: PROTOCOL[protocol] ?? 0, container_port: containerPort, host_port: hostPort }],
    ),
  );
}

const CPU_PERIOD = 100_000;
const LEAST_SHARES = 2;

function resourcesOf(container: Container): NonNullable<NonNullable<ContainerConfig["linux"]>["resources"]> {
  const { requests = {}, limits = {} } = (container["resources"] ?? {}) as {
    requests?: Record<string, string>;
    limits?: Record<string, string>;
  };
  const [request, limit] = [amountOf(requests["cpu"] ?? limits["cpu"]), amountOf(limits["cpu"])];
  const memory = amountOf(limits["memory"]);
  return {
    cpu_shares: Math.max(LEAST_SHARES, Math.floor((request ?? 0) * 1024)),
    ...(limit !== undefined && { cpu_period: CPU_PERIOD, cpu_quota: Math.floor(limit * CPU_PERIOD) }),
    ...(memory !== undefined && { memory_limit_in_bytes: Math.floor(memory) }),
  };
}

function amountOf(quantity: string | undefined): number | undefined {
  return quantity === undefined ? undefined : quantityValue(quantity);
}
