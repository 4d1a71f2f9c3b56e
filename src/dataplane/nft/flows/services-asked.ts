import type { ServicePort } from "../../../calc/model.ts";

/** Which Service answers at an address and port. */
export class ServicesAsked {
  private readonly names = new Map<string, string>();

  constructor(services: Iterable<ServicePort>) {
    for (const service of services) {
      // A pod's own port of the node is no Service.
      if (service.hostPort) continue;
      const { protocol, port, clusterAddress, externalAddresses, loadBalancerAddresses, nodePort, family } = service;
      const name = nameOf(service);
      const addresses = [
        ...(clusterAddress === null ? [] : [clusterAddress]),
        ...externalAddresses,
        ...loadBalancerAddresses,
      ];
      for (const address of addresses) this.put(`${protocol} ${address} ${port}`, name);
      if (nodePort !== null) this.put(`${protocol} node${family} ${nodePort}`, name);
    }
  }

  find(protocol: number, address: string, port: number): string | undefined {
    const family = address.includes(":") ? 6 : 4;
    return this.names.get(`${protocol} ${address} ${port}`) ?? this.names.get(`${protocol} node${family} ${port}`);
  }

  /** Where two have one address, the first by name does. */
  private put(key: string, name: string): void {
    const there = this.names.get(key);
    if (there === undefined || name < there) this.names.set(key, name);
  }
}

/** `NAMESPACE/NAME:PORT`, the port by its name, or by its number where it has none. */
function nameOf({ id, port }: ServicePort): string {
  const [name = "", ...rest] = id.split(":");
  const portName = rest.join(":").split("/", 1)[0];
  return `${name}:${portName || port}`;
}
