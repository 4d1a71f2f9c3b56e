import { type Cidr, formatCidr, parseCidr, V4, V6 } from "../../kit/ip.ts";
import { errors } from "../errors.ts";

/** `net-conf.json`, as users of the public overlay write it. */
export interface NetConf {
  /** Prefixes that all podCIDRs are in, one per family at most. */
  networks: readonly Cidr[];
  backend: { type: "host-gw" } | VxlanBackend;
}

export interface VxlanBackend {
  type: "vxlan";
  vni: number;
  port: number;
  /** Nodes of one subnet are reached without a tunnel. */
  directRouting: boolean;
  /** 0: found from the node's interface. */
  mtu: number;
}

const VXLAN = { vni: 1, port: 8472 } as const;
const MOST_VNI = 0xff_ff_ff;
const MOST_PORT = 65_535;

const FIELDS = ["Network", "EnableIPv4", "IPv6Network", "EnableIPv6", "Backend"];
const BACKEND_FIELDS: Readonly<Record<string, readonly string[]>> = {
  vxlan: ["Type", "VNI", "Port", "DirectRouting", "MTU"],
  "host-gw": ["Type"],
};

/** A field that is not known is refused: what is asked for must not be left undone in silence. */
export function parseNetConf(text: string): NetConf {
  const conf = objectOf(text);
  refuseOthers(conf, FIELDS, "");
  const backend = (conf["Backend"] ?? { Type: "vxlan" }) as Record<string, unknown>;
  const type = String(backend["Type"] ?? "vxlan");
  const known = Object.hasOwn(BACKEND_FIELDS, type) ? BACKEND_FIELDS[type] : undefined;
  if (!known) throw errors.OVERLAY_CONF(`Backend.Type "${type}" is not vxlan or host-gw`);
  refuseOthers(backend, known, "Backend.");
  const networks = [
    ...(conf["EnableIPv4"] === false ? [] : [network(conf, "Network")]),
    ...(conf["EnableIPv6"] === true ? [network(conf, "IPv6Network")] : []),
  ];
  if (networks.length === 0) throw errors.OVERLAY_CONF("neither IPv4 nor IPv6 is enabled");
  if (type === "host-gw") return { networks, backend: { type: "host-gw" } };
  return {
    networks,
    backend: {
      type: "vxlan",
      vni: whole(backend, "VNI", VXLAN.vni, MOST_VNI),
      port: whole(backend, "Port", VXLAN.port, MOST_PORT),
      directRouting: backend["DirectRouting"] === true,
      mtu: whole(backend, "MTU", 0, MOST_PORT),
    },
  };
}

function objectOf(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw errors.OVERLAY_CONF(error instanceof Error ? error.message : String(error));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw errors.OVERLAY_CONF("it is no object");
  return value as Record<string, unknown>;
}

function refuseOthers(value: Record<string, unknown>, known: readonly string[], path: string): void {
  const other = Object.keys(value).find((name) => !known.includes(name));
  if (other !== undefined) throw errors.OVERLAY_CONF(`${path}${other} is not one of ${known.join(", ")}`);
}

function network(conf: Record<string, unknown>, field: "Network" | "IPv6Network"): Cidr {
  const family = field === "Network" ? V4 : V6;
  const cidr = parseCidr(String(conf[field] ?? ""));
  if (cidr?.family !== family || !cidr.masked) {
    throw errors.OVERLAY_CONF(`${field} must be an ${family.name} prefix such as ${formatCidr(EXAMPLES[field])}`);
  }
  return cidr;
}

const EXAMPLES = { Network: parseCidr("10.244.0.0/16")!, IPv6Network: parseCidr("fd00:10:244::/56")! };

function whole(value: Record<string, unknown>, name: string, otherwise: number, most: number): number {
  const given = value[name] ?? otherwise;
  if (!Number.isInteger(given) || (given as number) < 0 || (given as number) > most) {
    throw errors.OVERLAY_CONF(`Backend.${name} must be a whole number up to ${most}`);
  }
  return given as number;
}
