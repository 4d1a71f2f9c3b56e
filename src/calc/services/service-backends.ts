import type { KubeObject } from "../../api/object.ts";
import { protocolNumber } from "../../api/tables/protocols.ts";
import { parseAddress } from "../../kit/ip.ts";
import { specialAddress } from "../addresses/special-addresses.ts";
import { hostNet } from "../nets.ts";
import { orMake } from "../or-make.ts";
import { portMember, type ServiceBackends } from "../policy/ip-sets.ts";

const SERVICE_LABEL = "kubernetes.io/service-name";

interface Slice {
  endpoints?: { addresses?: string[] }[] | null;
  ports?: { port?: number; protocol?: string }[] | null;
}

/** Endpoint slices by the service they belong to. */
export class Backends {
  readonly #slices = new Map<string, Map<string, KubeObject>>();
  readonly #serviceOf = new Map<string, string>();

  /** Gives the services that may have changed. */
  set(key: string, slice: KubeObject | undefined): string[] {
    const before = this.#serviceOf.get(key);
    const now = slice && serviceOf(slice);
    if (before !== undefined) this.#forget(before, key);
    if (slice && now !== undefined) {
      orMake(this.#slices, now, () => new Map<string, KubeObject>()).set(key, slice);
      this.#serviceOf.set(key, now);
    } else this.#serviceOf.delete(key);
    return [...new Set([before, now])].flatMap((service) => service ?? []);
  }

  /** In the order of their names. */
  slicesOf(service: string): KubeObject[] {
    const slices = [...(this.#slices.get(service) ?? [])];
    return slices.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, slice]) => slice);
  }

  #forget(service: string, key: string): void {
    const slices = this.#slices.get(service);
    slices?.delete(key);
    if (slices?.size === 0) this.#slices.delete(service);
  }

  /** All that are listed, ready or not: policy is about who something is, not how it feels. */
  of(service: string): ServiceBackends {
    const nets = new Set<string>();
    const netPorts = new Set<string>();
    for (const slice of this.#slices.get(service)?.values() ?? []) {
      const { endpoints, ports } = slice as unknown as Slice;
      for (const text of (endpoints ?? []).flatMap(({ addresses }) => addresses ?? [])) {
        const address = parseAddress(text);
        if (!address || specialAddress(text) !== undefined) continue;
        nets.add(hostNet(address));
        for (const { port, protocol } of ports ?? []) {
          const number = protocolNumber(protocol ?? "TCP");
          if (port !== undefined && number !== undefined) netPorts.add(portMember(hostNet(address), number, port));
        }
      }
    }
    return { nets: [...nets], netPorts: [...netPorts] };
  }
}

function serviceOf({ metadata }: KubeObject): string | undefined {
  const name = metadata.labels?.[SERVICE_LABEL];
  return name === undefined ? undefined : `${metadata.namespace ?? "default"}/${name}`;
}
