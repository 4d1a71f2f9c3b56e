import { type Cidr, contains, formatAddress, formatCidr, parseAddress, parseCidr, V4 } from "../../../kit/ip.ts";

/** One range of service addresses, and which of them are taken. */
export class AddressPool {
  readonly cidr: Cidr;
  readonly #taken = new Set<bigint>();
  readonly #first: bigint;
  readonly #size: bigint;
  #cursor: bigint;

  constructor(range: string) {
    const cidr = parseCidr(range);
    if (!cidr) throw new Error(`"${range}" is not an address range`);
    this.cidr = cidr;
    const all = 1n << BigInt(cidr.family.bits - cidr.length);
    // The network's own address is no service's, nor is IPv4's broadcast. More than 2^16 addresses are never used.
    this.#first = cidr.base + 1n;
    const usable = cidr.family === V4 ? all - 2n : all - 1n;
    this.#size = usable > 65_536n ? 65_536n : usable;
    // The bottom of the range is left to those who ask for an address by name, as Kubernetes does.
    this.#cursor = reservedBottom(this.#size);
  }

  get range(): string {
    return formatCidr(this.cidr);
  }

  covers(ip: string): boolean {
    const address = parseAddress(ip);
    return address !== undefined && contains(this.cidr, address) && address.value !== this.cidr.base;
  }

  /** False when it is taken already. */
  allocate(ip: string): boolean {
    const value = parseAddress(ip)?.value;
    if (value === undefined || this.#taken.has(value)) return false;
    this.#taken.add(value);
    return true;
  }

  /** Any free address; undefined when the range is full. */
  allocateAny(): string | undefined {
    for (let tried = 0n; tried < this.#size; tried++) {
      const value = this.#first + this.#cursor;
      this.#cursor = (this.#cursor + 1n) % this.#size;
      if (this.#taken.has(value)) continue;
      this.#taken.add(value);
      return formatAddress({ family: this.cidr.family, value });
    }
    return undefined;
  }

  free(ip: string): void {
    const value = parseAddress(ip)?.value;
    if (value !== undefined) this.#taken.delete(value);
  }
}

function reservedBottom(size: bigint): bigint {
  const band = size / 16n;
  if (band < 16n) return 0n;
  return band > 256n ? 256n : band;
}
