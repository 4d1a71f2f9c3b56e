import type { KubeObject } from "../../api/object.ts";
import { parseAddress } from "../../kit/ip.ts";
import type { ModelProblem, Net, ServicePort } from "../model.ts";
import { addressOf, NetTable, toNet, toNets } from "../nets.ts";
import { orMake } from "../or-make.ts";
import { problem } from "../policy/untranslatable.ts";
import type { TableDiff } from "../table-diff.ts";
import { claimedAddresses, type Service, sctpPorts, servicePorts } from "./service-ports.ts";

/** Without it nothing on the node reaches the API: it is always served. */
const API_SERVER = "default/kubernetes";
const ZONE_LABEL = "topology.kubernetes.io/zone";

/** What services are calculated from, in addition to themselves. */
interface ServiceParts {
  slicesOf(service: string): readonly KubeObject[];
  /** Whose an address is, as in "ADDRESS is an address of node a"; undefined: a Service may have it. */
  holder(net: Net): string | undefined;
}

/** Ports of services, each service by itself: a change affects no other service. */
export class Services {
  readonly #node: string;
  readonly #table: TableDiff<ServicePort>;
  readonly #parts: ServiceParts;
  /** By address, the services that want to be asked there, whether they are or not. */
  readonly #claims = new Map<Net, Set<string>>();
  readonly #claimsOf = new Map<string, readonly Net[]>();
  readonly #rowsOf = new Map<string, string[]>();
  #zone = "";
  #excluded: { text: string; nets: NetTable } = { text: "", nets: new NetTable() };

  constructor(node: string, table: TableDiff<ServicePort>, parts: ServiceParts) {
    this.#node = node;
    this.#table = table;
    this.#parts = parts;
  }

  claimants(net: Net): Iterable<string> {
    return this.#claims.get(net) ?? [];
  }

  /** Takes this node's zone from its labels; whether it is another than before, so that every service is worth another look. */
  standsAt(node: KubeObject | undefined): boolean {
    const zone = node?.metadata.labels?.[ZONE_LABEL] ?? "";
    if (zone === this.#zone) return false;
    this.#zone = zone;
    return true;
  }

  /** Takes the prefixes that are left to the node; whether they are others than before, so that every service is worth another look. */
  excludes(prefixes: readonly string[]): boolean {
    const text = prefixes.join();
    if (text === this.#excluded.text) return false;
    const nets = new NetTable();
    for (const net of toNets(prefixes)) nets.add(net, true);
    this.#excluded = { text, nets };
    return true;
  }

  /** A service, or one of its slices, changed; undefined where it is gone. Gives what is wrong with it now. */
  set(key: string, service: Service | undefined): ModelProblem[] {
    const vantage = { node: this.#node, zone: this.#zone };
    const claims = service ? claimedAddresses(service).flatMap((address) => toNet(address) ?? []) : [];
    this.#noteClaims(key, claims);
    const refused = claims.flatMap((net) => {
      const holder = this.#parts.holder(net);
      return holder === undefined ? [] : [{ address: addressOf(net), holder }];
    });
    const without = new Set(refused.map(({ address }) => address));
    const isExcluded = (text: string) => {
      const address = this.#excluded.text === "" || key === API_SERVER ? undefined : parseAddress(text);
      return address !== undefined && this.#excluded.nets.find(address) === true;
    };
    const refuses = (address: string) => without.has(address) || isExcluded(address);
    const rows = service ? servicePorts(service, this.#parts.slicesOf(key), vantage, refuses) : [];
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of this.#rowsOf.get(key) ?? []) if (!ids.has(id)) this.#table.set(id, undefined);
    for (const row of rows) this.#table.set(row.id, row);
    if (rows.length > 0) this.#rowsOf.set(key, [...ids]);
    else this.#rowsOf.delete(key);
    return service ? [...problemsOf(service), ...refusalOf(service, refused)] : [];
  }

  #noteClaims(key: string, claims: readonly Net[]): void {
    for (const net of this.#claimsOf.get(key) ?? []) {
      const services = this.#claims.get(net);
      services?.delete(key);
      if (services?.size === 0) this.#claims.delete(net);
    }
    for (const net of claims) orMake(this.#claims, net, () => new Set<string>()).add(key);
    if (claims.length > 0) this.#claimsOf.set(key, claims);
    else this.#claimsOf.delete(key);
  }
}

/** Whoever writes a Service may write any address into it: one that is somebody's stays theirs. */
function refusalOf(service: Service, refused: readonly { address: string; holder: string }[]): ModelProblem[] {
  if (refused.length === 0) return [];
  const claims = refused.map(({ address, holder }) => `${address} is ${holder}`).join("; ");
  const message = `external addresses of this Service are not served: ${claims}`;
  return [problem("Service", service.metadata, "SERVICE_ADDRESS_REFUSED", message)];
}

function problemsOf(service: Service): ModelProblem[] {
  const ports = sctpPorts(service);
  if (ports.length === 0) return [];
  const message = `SCTP is not supported: port ${ports.join(", ")} of this Service is not served in eBPF mode`;
  return [problem("Service", service.metadata, "SCTP_SERVICE_UNSUPPORTED", message)];
}
