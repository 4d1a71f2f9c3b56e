import type { KubeObject } from "../../../api/object.ts";
import { StatusError } from "../../../api/status.ts";
import type { Service } from "../workload-types.ts";
import { AddressPool } from "./address-pool.ts";
import { keepAllocated, needsClusterIP, needsHealthCheckPort, needsNodePorts, portsOf } from "./service-needs.ts";

type Family = "IPv4" | "IPv6";

export interface ServiceAllocatorConfig {
  /** One range, or one of each family: `["10.96.0.0/12", "fd00:10:96::/112"]`. The first is the cluster's own family. */
  clusterCidrs: readonly string[];
  /** Both ends are in it. */
  nodePorts?: readonly [number, number];
}

const NODE_PORTS = [30000, 32767] as const;

/**
 * The addresses and node ports of services. The API server asks while it admits a write, and says afterwards what became of it:
 *
 *   allocate -> commit   the write is stored; what the old object had and the new one has not is free again
 *   allocate -> abandon  a dry run, or refused later: what was newly taken is free again
 *   release              the service is gone
 */
export class ServiceAllocator {
  readonly #pools = new Map<Family, AddressPool>();
  readonly #ports = new Set<number>();
  readonly #range: readonly [number, number];
  #portCursor: number;

  constructor(existing: readonly KubeObject[], config: ServiceAllocatorConfig) {
    for (const cidr of config.clusterCidrs) {
      const pool = new AddressPool(cidr);
      this.#pools.set(pool.cidr.family.name, pool);
    }
    this.#range = config.nodePorts ?? NODE_PORTS;
    this.#portCursor = this.#range[0] + Math.min(86, Math.floor((this.#range[1] - this.#range[0]) / 32));
    for (const service of existing) {
      for (const ip of addressesOf(service as Service)) this.#poolOf(ip)?.allocate(ip);
      for (const port of portsOf(service as Service)) this.#ports.add(port);
    }
  }

  /** Fills `spec` with addresses and ports, or throws 422 and has taken nothing. */
  allocate(object: KubeObject, before: KubeObject | undefined): void {
    const service = object as Service;
    const old = before as Service | undefined;
    if (old) keepAllocated(service, old);
    const undo: (() => void)[] = [];
    try {
      if (needsClusterIP(service)) {
        this.#chooseFamilies(service);
        if (service.spec.clusterIP !== "None") this.#takeAddresses(service, old, undo);
      }
      this.#takePorts(service, old, undo);
    } catch (error) {
      for (const step of undo) step();
      throw error;
    }
  }

  commit(object: KubeObject, before: KubeObject | undefined): void {
    if (before) this.#free(before as Service, object as Service);
  }

  abandon(object: KubeObject, before: KubeObject | undefined): void {
    this.#free(object as Service, before as Service | undefined);
  }

  release(object: KubeObject): void {
    this.#free(object as Service, undefined);
  }

  /** Gives back what `from` has and `keeper` has not. */
  #free(from: Service, keeper: Service | undefined): void {
    const keptIps = new Set(keeper ? addressesOf(keeper) : []);
    const keptPorts = new Set(keeper ? portsOf(keeper) : []);
    for (const ip of addressesOf(from)) if (!keptIps.has(ip)) this.#poolOf(ip)?.free(ip);
    for (const port of portsOf(from)) if (!keptPorts.has(port)) this.#ports.delete(port);
  }

  /** Which families the service has, in which order: what it asks for, else what its addresses are, else the cluster's own. */
  #chooseFamilies(service: Service): void {
    const { spec } = service;
    const cluster = [...this.#pools.keys()];
    const given = (spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : [])).filter((ip) => ip !== "None");
    const headlessWithoutSelector = spec.clusterIP === "None" && !spec.selector;
    spec.ipFamilyPolicy ??= given.length > 1 || (spec.ipFamilies?.length ?? 0) > 1 ? "RequireDualStack" : "SingleStack";
    if (spec.ipFamilyPolicy === "RequireDualStack" && cluster.length < 2 && !headlessWithoutSelector) {
      const why = "this cluster is not configured for dual-stack services";
      throw invalid(service, "spec.ipFamilyPolicy", spec.ipFamilyPolicy, why);
    }
    for (const [index, family] of (spec.ipFamilies ?? []).entries()) {
      if (cluster.includes(family) || headlessWithoutSelector) continue;
      throw invalid(service, `spec.ipFamilies[${index}]`, family, "not configured on this cluster");
    }
    const first = spec.ipFamilies?.[0] ?? (given[0] ? familyOf(given[0]) : cluster[0]) ?? "IPv4";
    const second = cluster.find((family) => family !== first);
    const dual = spec.ipFamilyPolicy !== "SingleStack" && second !== undefined;
    spec.ipFamilies = dual ? [first, second] : [first];
  }

  #takeAddresses(service: Service, old: Service | undefined, undo: (() => void)[]): void {
    const { spec } = service;
    const asked = spec.clusterIPs?.length ? spec.clusterIPs : spec.clusterIP ? [spec.clusterIP] : [];
    const had = new Set(old ? addressesOf(old) : []);
    const families = spec.ipFamilies ?? [];
    for (const [index, ip] of asked.entries()) {
      if (families[index] === undefined || familyOf(ip) === families[index]) continue;
      const why = `expected an ${families[index]} value as indicated by \`spec.ipFamilies[${index}]\``;
      throw invalid(service, `spec.clusterIPs[${index}]`, ip, why);
    }
    spec.clusterIPs = families.map((family, index) => {
      const ip = asked[index];
      if (ip !== undefined && had.has(ip)) return ip;
      const taken = ip === undefined ? this.#takeAny(service, family) : this.#takeThis(service, ip);
      undo.push(() => this.#poolOf(taken)?.free(taken));
      return taken;
    });
    spec.clusterIP = spec.clusterIPs[0];
  }

  #takeAny(service: Service, family: Family): string {
    const ip = this.#pools.get(family)?.allocateAny();
    if (ip !== undefined) return ip;
    const range = this.#pools.get(family)?.range ?? family;
    const message = `failed to allocate a serviceIP: range is full (${range})`;
    throw new StatusError(500, "InternalError", `Internal error occurred: ${message}`, {
      name: service.metadata.name,
      kind: "Service",
    });
  }

  #takeThis(service: Service, ip: string): string {
    const pool = this.#pools.get(familyOf(ip));
    if (!pool?.covers(ip)) {
      const why = `the provided IP (${ip}) is not in the valid range. The range of valid IPs is ${pool?.range ?? ""}`;
      throw invalid(service, "spec.clusterIPs", [ip], `failed to allocate IP ${ip}: ${why}`);
    }
    if (pool.allocate(ip)) return ip;
    throw invalid(service, "spec.clusterIPs", [ip], `failed to allocate IP ${ip}: provided IP is already allocated`);
  }

  #takePorts(service: Service, old: Service | undefined, undo: (() => void)[]): void {
    // One node port may serve TCP and UDP of the same service.
    const mine = new Set(old ? portsOf(old) : []);
    const take = (wanted: number | undefined, field: string) => {
      if (wanted && mine.has(wanted)) return wanted;
      const port = wanted ? this.#takeThisPort(service, wanted, field) : this.#takeAnyPort(service);
      undo.push(() => this.#ports.delete(port));
      mine.add(port);
      return port;
    };
    if (needsNodePorts(service)) {
      // Those asked for by number first, so that a free choice does not take one of them.
      const ports = service.spec.ports ?? [];
      for (const [index, port] of ports.entries())
        if (port.nodePort) take(port.nodePort, `spec.ports[${index}].nodePort`);
      const given = new Map<number, number>();
      for (const port of ports) {
        port.nodePort ||= given.get(port.port) ?? take(undefined, "");
        given.set(port.port, port.nodePort);
      }
    } else
      for (const [index, port] of (service.spec.ports ?? []).entries()) {
        if (port.nodePort && service.spec.type !== "LoadBalancer") {
          throw forbiddenPort(service, `spec.ports[${index}].nodePort`);
        }
      }
    if (needsHealthCheckPort(service)) {
      service.spec.healthCheckNodePort = take(service.spec.healthCheckNodePort, "spec.healthCheckNodePort");
    }
  }

  #takeThisPort(service: Service, port: number, field: string): number {
    const [first, last] = this.#range;
    if (port < first || port > last) {
      const why = `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
      throw invalid(service, field, port, why);
    }
    if (this.#ports.has(port)) throw invalid(service, field, port, "provided port is already allocated");
    this.#ports.add(port);
    return port;
  }

  #takeAnyPort(service: Service): number {
    const [first, last] = this.#range;
    for (let tried = first; tried <= last; tried++) {
      const port = this.#portCursor;
      this.#portCursor = port >= last ? first : port + 1;
      if (this.#ports.has(port)) continue;
      this.#ports.add(port);
      return port;
    }
    throw new StatusError(
      500,
      "InternalError",
      "Internal error occurred: failed to allocate a nodePort: range is full",
      {
        name: service.metadata.name,
        kind: "Service",
      },
    );
  }

  #poolOf(ip: string): AddressPool | undefined {
    return this.#pools.get(familyOf(ip));
  }
}

function familyOf(ip: string): Family {
  return ip.includes(":") ? "IPv6" : "IPv4";
}

function addressesOf({ spec }: Service): string[] {
  if (spec.type === "ExternalName") return [];
  const ips = spec.clusterIPs?.length ? spec.clusterIPs : spec.clusterIP ? [spec.clusterIP] : [];
  return ips.filter((ip) => ip !== "None" && ip !== "");
}

function invalid(service: Service, field: string, value: unknown, why: string): StatusError {
  const message = `Invalid value: ${JSON.stringify(value)}: ${why}`;
  return refusal(service, field, "FieldValueInvalid", message);
}

function forbiddenPort(service: Service, field: string): StatusError {
  const message = `Forbidden: may not be used when \`type\` is '${service.spec.type ?? "ClusterIP"}'`;
  return refusal(service, field, "FieldValueForbidden", message);
}

function refusal(service: Service, field: string, reason: string, message: string): StatusError {
  const name = service.metadata.name;
  return new StatusError(422, "Invalid", `Service "${name}" is invalid: ${field}: ${message}`, {
    name,
    kind: "Service",
    causes: [{ reason, message, field }],
  });
}
