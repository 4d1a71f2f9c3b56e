import { join } from "node:path";
import { FLEX_VOLUME_DIRECTORY, POLICY_SYNC_DRIVER } from "../../api/protocol/policy-sync.ts";

/** What the volume driver has below the kubelet's directory, which no pod sees without rights on the node. */
export function driverPlaces(kubeletDir: string): Record<"plugin" | "registration" | "flexVolume", string> {
  return {
    plugin: join(kubeletDir, "plugins", POLICY_SYNC_DRIVER),
    registration: join(kubeletDir, "plugins_registry", `${POLICY_SYNC_DRIVER}-reg.sock`),
    flexVolume: join(kubeletDir, "plugins", FLEX_VOLUME_DIRECTORY),
  };
}
