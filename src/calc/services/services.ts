import type { KubeObject } from "../../api/object.ts";
import type { ModelProblem, ServicePort } from "../model.ts";
import { problem } from "../policy/untranslatable.ts";
import type { TableDiff } from "../table-diff.ts";
import { type Service, sctpPorts, servicePorts } from "./service-ports.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";

/** Ports of services, each service by itself: a change affects no other service. */
export class Services {
  readonly #node: string;
  readonly #table: TableDiff<ServicePort>;
  readonly #slicesOf: (service: string) => readonly KubeObject[];
  readonly #rowsOf = new Map<string, string[]>();
  #zone = "";

  constructor(node: string, table: TableDiff<ServicePort>, slicesOf: (service: string) => readonly KubeObject[]) {
    this.#node = node;
    this.#table = table;
    this.#slicesOf = slicesOf;
  }

  /** Takes this node's zone from its labels; whether it is another than before, so that every service is worth another look. */
  standsAt(node: KubeObject | undefined): boolean {
    const zone = node?.metadata.labels?.[ZONE_LABEL] ?? "";
    if (zone === this.#zone) return false;
    this.#zone = zone;
    return true;
  }

  /** A service, or one of its slices, changed; undefined where it is gone. Gives what is wrong with it now. */
  set(key: string, service: Service | undefined): ModelProblem[] {
    const vantage = { node: this.#node, zone: this.#zone };
    const rows = service ? servicePorts(service, this.#slicesOf(key), vantage) : [];
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of this.#rowsOf.get(key) ?? []) if (!ids.has(id)) this.#table.set(id, undefined);
    for (const row of rows) this.#table.set(row.id, row);
    if (rows.length > 0) this.#rowsOf.set(key, [...ids]);
    else this.#rowsOf.delete(key);
    return service ? problemsOf(service) : [];
  }
}

function problemsOf(service: Service): ModelProblem[] {
  const ports = sctpPorts(service);
  if (ports.length === 0) return [];
  const message = `SCTP is not supported: port ${ports.join(", ")} of this Service is not served in eBPF mode`;
  return [problem("Service", service.metadata, "SCTP_SERVICE_UNSUPPORTED", message)];
}
