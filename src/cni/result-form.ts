import type { CniResult } from "../api/protocol/cni.ts";

/** A result as the asked version of the specification writes it. */
export function resultForm(result: CniResult, cniVersion: string): object {
  const [major = 0, minor = 0] = cniVersion.split(".").map(Number);
  const knowsMtu = major > 1 || (major === 1 && minor >= 1);
  return {
    cniVersion,
    interfaces: result.interfaces.map(({ mtu, ...rest }) => (knowsMtu && mtu !== undefined ? { ...rest, mtu } : rest)),
    // Before 1.0 each address said its family.
    ips: result.ips.map((ip) => (major < 1 ? { version: ip.address.includes(":") ? "6" : "4", ...ip } : ip)),
    routes: result.routes,
    dns: result.dns ?? {},
  };
}
