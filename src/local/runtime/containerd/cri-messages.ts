import { bytes, flag, int, many, message, text, texts } from "../../../kit/grpc/protobuf.ts";

/** The Container Runtime Interface, `runtime.v1`: what of it a kubelet of ours says and hears. */
export const CRI_SERVICE = "runtime.v1.RuntimeService";

export const NAMESPACE = { pod: 0, container: 1, node: 2 } as const;
export const PROPAGATION = { None: 0, HostToContainer: 1, Bidirectional: 2 } as const;
export const CONTAINER_STATE = { created: 0, running: 1, exited: 2, unknown: 3 } as const;
export const SECURITY_PROFILE = { RuntimeDefault: 0, Unconfined: 1, Localhost: 2 } as const;
export const PROTOCOL: Readonly<Record<string, number>> = { TCP: 0, UDP: 1, SCTP: 2 };

const NUMBER = { value: int(1) };
const NAMESPACES = { network: int(1), pid: int(2), ipc: int(3) };
const PROFILE = { profile_type: int(1), localhost_ref: text(2) };
const RESOURCES = {
  cpu_period: int(1),
  cpu_quota: int(2),
  cpu_shares: int(3),
  memory_limit_in_bytes: int(4),
  oom_score_adj: int(5),
};
const SANDBOX_METADATA = { name: text(1), uid: text(2), namespace: text(3), attempt: int(4) };
const CONTAINER_METADATA = { name: text(1), attempt: int(2) };
const IMAGE = { image: text(1) };

const SANDBOX_SECURITY = {
  namespace_options: message(1, NAMESPACES),
  run_as_user: message(3, NUMBER),
  run_as_group: message(8, NUMBER),
  privileged: flag(6),
  seccomp: message(9, PROFILE),
};

export const SANDBOX_CONFIG = {
  metadata: message(1, SANDBOX_METADATA),
  hostname: text(2),
  log_directory: text(3),
  dns_config: message(4, { servers: many(text(1)), searches: many(text(2)), options: many(text(3)) }),
  port_mappings: many(message(5, { protocol: int(1), container_port: int(2), host_port: int(3), host_ip: text(4) })),
  labels: texts(6),
  annotations: texts(7),
  linux: message(8, { cgroup_parent: text(1), security_context: message(2, SANDBOX_SECURITY), sysctls: texts(3) }),
};

const CONTAINER_SECURITY = {
  capabilities: message(1, { add_capabilities: many(text(1)), drop_capabilities: many(text(2)) }),
  privileged: flag(2),
  namespace_options: message(3, NAMESPACES),
  run_as_user: message(5, NUMBER),
  run_as_group: message(12, NUMBER),
  readonly_rootfs: flag(7),
  supplemental_groups: many(int(8)),
  no_new_privs: flag(11),
  masked_paths: many(text(13)),
  readonly_paths: many(text(14)),
  seccomp: message(15, PROFILE),
};

export const CONTAINER_CONFIG = {
  metadata: message(1, CONTAINER_METADATA),
  image: message(2, IMAGE),
  command: many(text(3)),
  args: many(text(4)),
  working_dir: text(5),
  envs: many(message(6, { key: text(1), value: text(2) })),
  mounts: many(message(7, { container_path: text(1), host_path: text(2), readonly: flag(3), propagation: int(5) })),
  labels: texts(9),
  log_path: text(11),
  linux: message(15, { resources: message(1, RESOURCES), security_context: message(2, CONTAINER_SECURITY) }),
};

const SANDBOX_ID = { pod_sandbox_id: text(1) };
const CONTAINER_ID = { container_id: text(1) };
const NOTHING = {};

/** Each call: what is sent, what comes back. */
export const CRI_CALLS = {
  Version: [{ version: text(1) }, { runtime_name: text(2), runtime_version: text(3) }],
  RunPodSandbox: [{ config: message(1, SANDBOX_CONFIG) }, SANDBOX_ID],
  PodSandboxStatus: [
    { ...SANDBOX_ID, verbose: flag(2) },
    {
      status: message(1, { network: message(5, { ip: text(1), additional_ips: many(message(2, { ip: text(1) })) }) }),
      info: texts(2),
    },
  ],
  ListPodSandbox: [{ filter: message(1, { label_selector: texts(3) }) }, { items: many(message(1, { id: text(1) })) }],
  StopPodSandbox: [SANDBOX_ID, NOTHING],
  RemovePodSandbox: [SANDBOX_ID, NOTHING],
  CreateContainer: [
    { ...SANDBOX_ID, config: message(2, CONTAINER_CONFIG), sandbox_config: message(3, SANDBOX_CONFIG) },
    CONTAINER_ID,
  ],
  StartContainer: [CONTAINER_ID, NOTHING],
  StopContainer: [{ ...CONTAINER_ID, timeout: int(2) }, NOTHING],
  RemoveContainer: [CONTAINER_ID, NOTHING],
  ListContainers: [NOTHING, { containers: many(message(1, { id: text(1), state: int(6) })) }],
  ContainerStatus: [
    { ...CONTAINER_ID, verbose: flag(2) },
    { status: message(1, { state: int(3), exit_code: int(7), image_ref: text(9), reason: text(10) }), info: texts(2) },
  ],
  ExecSync: [
    { ...CONTAINER_ID, cmd: many(text(2)), timeout: int(3) },
    { stdout: bytes(1), stderr: bytes(2), exit_code: int(3) },
  ],
} as const;
