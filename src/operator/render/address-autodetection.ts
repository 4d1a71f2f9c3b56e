import type { EffectiveInstallation } from "./inputs.ts";

type Method = NonNullable<NonNullable<EffectiveInstallation["vendorNetwork"]>["nodeAddressAutodetectionV4"]>;

/** The method as one word for the agent's environment; undefined where the family is not looked for. */
export function autodetectionMethod(method: Method | undefined): string | undefined {
  if (!method) return undefined;
  if (method.orchestrator) return "orchestrator-internal-ip";
  if (method.interface) return `interface=${method.interface}`;
  if (method.skipInterface) return `skip-interface=${method.skipInterface}`;
  if (method.canReach) return `can-reach=${method.canReach}`;
  if (method.cidrs && method.cidrs.length > 0) return `cidr=${method.cidrs.join(",")}`;
  return method.firstFound === false ? undefined : "first-found";
}
