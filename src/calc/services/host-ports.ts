import type { KubeObject } from "../../api/object.ts";
import type { ModelProblem, Net, ServiceBackend, ServicePort } from "../model.ts";
import { addressOf, isV4, toAddress } from "../nets.ts";
import { problem } from "../policy/untranslatable.ts";
import type { TableDiff } from "../table-diff.ts";

interface Container {
  restartPolicy?: string;
  ports?: { containerPort: number; hostPort?: number; hostIP?: string; protocol?: string }[] | null;
}

const PROTOCOLS: Readonly<Record<string, 6 | 17>> = { TCP: 6, UDP: 17 };
const FAMILIES = [4, 6] as const;
const ANY_ADDRESS: readonly string[] = ["", "0.0.0.0", "::"];

/** Ports of this node that lead to its pods, as services whose only backend is the pod. */
export class HostPorts {
  readonly #table: TableDiff<ServicePort>;
  readonly #rowsOf = new Map<string, string[]>();
  /** Pods that name an address of the node, rightly or not. */
  readonly #naming = new Set<string>();
  #own: ReadonlySet<string> = new Set();

  constructor(table: TableDiff<ServicePort>) {
    this.#table = table;
  }

  /** The pods to look at again. */
  standsAt(addresses: readonly string[]): Iterable<string> {
    const isSame = addresses.length === this.#own.size && addresses.every((address) => this.#own.has(address));
    this.#own = new Set(addresses);
    return isSame ? [] : this.#naming;
  }

  /** A pod of this node changed; undefined where it is gone. Gives what is wrong with it now. */
  set(key: string, pod: KubeObject | undefined, nets: readonly Net[]): ModelProblem[] {
    const found = pod ? mappings(pod) : [];
    const problems = found.flatMap((mapping) => this.#problem(mapping) ?? []);
    const served = found.filter((mapping) => this.#problem(mapping) === undefined);
    const rows = pod ? hostPortRows(pod, served, nets) : [];
    if (found.some(({ hostIP }) => !ANY_ADDRESS.includes(hostIP))) this.#naming.add(key);
    else this.#naming.delete(key);
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of this.#rowsOf.get(key) ?? []) if (!ids.has(id)) this.#table.set(id, undefined);
    for (const row of rows) this.#table.set(row.id, row);
    if (rows.length > 0) this.#rowsOf.set(key, [...ids]);
    else this.#rowsOf.delete(key);
    if (!pod || problems.length === 0) return [];
    const message = `host ports of this pod are not served: ${problems.join("; ")}`;
    return [problem("Pod", pod.metadata, "HOST_PORT_UNSUPPORTED", message)];
  }

  /** Only addresses of the node are a pod's to name: it could take any other machine's otherwise. */
  #problem({ hostPort, hostIP, protocol }: Mapping): string | undefined {
    if (PROTOCOLS[protocol] === undefined) return `port ${hostPort} is ${protocol}`;
    const address = toAddress(hostIP);
    const isOwn = address !== undefined && (isLoopback(address) || this.#own.has(address));
    return ANY_ADDRESS.includes(hostIP) || isOwn ? undefined : `${hostIP} is no address of this node`;
  }
}

function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

function hostPortRows({ metadata }: KubeObject, served: readonly Mapping[], nets: readonly Net[]): ServicePort[] {
  const { namespace = "default", name } = metadata;
  return served.flatMap(({ containerPort, hostPort, hostIP, protocol }) => {
    const number = PROTOCOLS[protocol];
    if (number === undefined) return [];
    return FAMILIES.flatMap((family): ServicePort[] => {
      const pods = nets.map(addressOf).filter((text) => isV4(text) === (family === 4));
      const at = addressesAt(hostIP, family);
      if (pods.length === 0 || at === undefined) return [];
      const backends = pods.map(
        (address): ServiceBackend => ({ address, port: containerPort, local: true, node: null }),
      );
      const where = hostIP === "" ? "" : `${hostIP}-`;
      return [
        {
          id: `${namespace}/${name}:host-port-${where}${hostPort}/${protocol.toLowerCase()}/${family}`,
          hostPort: true,
          ...{ protocol: number, family, clusterAddress: null, port: hostPort },
          ...{ externalAddresses: at, loadBalancerAddresses: [], sourceRanges: null },
          nodePort: at.length === 0 ? hostPort : null,
          ...{ healthCheckNodePort: null, healthCheckBackends: 0, affinitySeconds: 0 },
          ...{ internalLocal: true, externalLocal: true },
          ...{ clusterBackends: backends, localBackends: backends, anyBackends: true },
        },
      ];
    });
  });
}

/** Those of this family at which the node answers: none is all of them, undefined that it does not. */
function addressesAt(hostIP: string, family: 4 | 6): string[] | undefined {
  const isOfFamily = hostIP === "" || (family === 4) === !hostIP.includes(":");
  if (!isOfFamily) return undefined;
  if (ANY_ADDRESS.includes(hostIP)) return [];
  const address = toAddress(hostIP);
  return address === undefined ? undefined : [address];
}

interface Mapping {
  containerPort: number;
  hostPort: number;
  hostIP: string;
  protocol: string;
}

/** Init containers that go on running are as good as containers. Two containers may name one port of the host: the first has it. */
function mappings(pod: KubeObject): Mapping[] {
  const { containers = [], initContainers = [] } = (pod["spec"] ?? {}) as Record<string, Container[] | undefined>;
  const running = [...initContainers.filter(({ restartPolicy }) => restartPolicy === "Always"), ...containers];
  const found = new Map<string, Mapping>();
  for (const { ports } of running) {
    for (const { containerPort, hostPort = 0, hostIP = "", protocol = "TCP" } of ports ?? []) {
      if (hostPort === 0) continue;
      const key = `${hostIP} ${hostPort} ${protocol}`;
      if (!found.has(key)) found.set(key, { containerPort, hostPort, hostIP, protocol });
    }
  }
  return [...found.values()];
}
