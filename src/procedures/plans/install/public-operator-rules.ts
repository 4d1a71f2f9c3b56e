import type { KubeObject } from "../../../api/object.ts";
import { contains, parseCidr } from "../../../kit/ip.ts";
import { fieldAt } from "../../field-at.ts";
import type { Observation } from "../../observation.ts";

/** What the public system's operator would refuse of an Installation, and go Degraded. */
export interface Refusal {
  path: string;
  message: string;
  fix: string;
}

interface Pool {
  cidr?: string;
  encapsulation?: string;
}

const NETWORK = "spec.calicoNetwork";

/** The rules of its own validation that depend on the cluster, or on two fields at once; what one field may hold, its CRD says. */
export function refusedByPublicOperator(
  installation: KubeObject,
  { apiAddress, service }: Pick<Observation, "apiAddress" | "service">,
): Refusal[] {
  const network = (fieldAt(installation, NETWORK) ?? {}) as {
    ipPools?: Pool[];
    linuxDataplane?: string;
    bpfNetworkBootstrap?: string;
    bgp?: string;
  };
  const pools = network.ipPools ?? [];
  const at = (field: string, message: string, fix: string): Refusal => ({ path: `${NETWORK}.${field}`, message, fix });
  const isBpf = network.linuxDataplane === "BPF";
  return [
    ...pools.flatMap(({ cidr = "" }) => {
      const ranges = apiAddress.podCidrs;
      if (ranges.length === 0 || ranges.some((range) => isWithin(cidr, range))) return [];
      const message = `IP pool ${cidr} is not within the cluster's pod network ${ranges.join(", ")}`;
      return [at("ipPools", message, `--pod-cidr ${ranges[0]}`)];
    }),
    ...pools.flatMap(({ cidr = "", encapsulation = "" }) => {
      if (!cidr.includes(":") || !encapsulation.startsWith("IPIP")) return [];
      return [at("ipPools", `IPv6 pool ${cidr} cannot use ${encapsulation}`, "use VXLAN or None for IPv6 pools")];
    }),
    ...(network.bgp === "Disabled"
      ? pools.flatMap(({ cidr = "", encapsulation = "" }) => {
          if (!/^(?:IPIP|None)/.test(encapsulation)) return [];
          return [at("bgp", `IP pool ${cidr} with ${encapsulation} needs BGP`, "use VXLAN, or set bgp to Enabled")];
        })
      : []),
    ...(isBpf && fieldAt(installation, "spec.nonPrivileged") === "Enabled"
      ? [{ path: "spec.nonPrivileged", message: "eBPF needs privileged agents", fix: "set nonPrivileged to Disabled" }]
      : []),
    ...(network.bpfNetworkBootstrap === "Enabled" && !isBpf
      ? [at("bpfNetworkBootstrap", "it needs linuxDataplane BPF", "remove bpfNetworkBootstrap")]
      : []),
    ...(network.bpfNetworkBootstrap === "Enabled" && service.endpointMap
      ? [at("bpfNetworkBootstrap", `ConfigMap ${service.endpointMap.metadata.name} exists`, "delete one of the two")]
      : []),
  ];
}

function isWithin(inner: string, outer: string): boolean {
  const [small, large] = [parseCidr(inner), parseCidr(outer)];
  if (!small || !large || small.family !== large.family) return false;
  return small.length >= large.length && contains(large, { family: small.family, value: small.base });
}
