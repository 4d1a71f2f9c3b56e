import { createHash } from "node:crypto";
import type { KubeObject } from "../../api/object.ts";
import type { RenderInputs } from "./inputs.ts";

export const CNI_CONFIG = { name: "vendor-cni-config", key: "config", file: "10-vendor.conflist" } as const;

/**
 * The conflist `cni-install` puts on nodes. The plugin only calls the agent on its node: it needs no credentials, and no plugin of others, which
 * a node may not have. Host ports are the agent's too, so that they go with the pod in whichever data plane.
 */
export function cniConfigList({ installation }: Pick<RenderInputs, "installation">): string {
  const { cni, vendorNetwork: network = {} } = installation;
  const vendor = {
    type: "vendor",
    socket: "/var/run/vendor/cni.sock",
    mtu: network.mtu ?? 0,
    ipam: cni?.ipam?.type === "HostLocal" ? { type: "host-local", subnet: "usePodCidr" } : { type: "vendor" },
    container_settings: { allow_ip_forwarding: network.containerIPForwarding === "Enabled" },
    policy_setup_timeout_seconds: network.linuxPolicySetupTimeoutSeconds ?? 0,
  };
  return `${JSON.stringify({ name: "vendor", cniVersion: "1.0.0", plugins: [vendor] }, undefined, 2)}\n`;
}

export function cniConfigMap(inputs: RenderInputs): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: CNI_CONFIG.name, namespace: inputs.names.namespaces.system },
    data: { [CNI_CONFIG.key]: cniConfigList(inputs) },
  };
}

/** Nodes read the configuration when their pod starts, so a change must roll them. */
export function cniConfigHash(inputs: RenderInputs): string {
  return createHash("sha256").update(cniConfigList(inputs)).digest("hex").slice(0, 16);
}
