/** The sets our rules ask: those of the model, one for each family, and a few of our own. */
import { PORT_PROTOCOLS } from "../../api/tables/protocols.ts";
import type { DataplaneModel, IpSet, Net } from "../../calc/model.ts";
import { familyOf, netOf, setName } from "./names.ts";
import { covering, prefixText } from "./prefixes.ts";
import type { IpFamily, NftSet } from "./ruleset.ts";

export const FAMILIES = [4, 6] as const;
const ADDRESS_TYPE = { 4: "ipv4_addr", 6: "ipv6_addr" } as const;

const PROTOCOL_NUMBERS = new Map([...PORT_PROTOCOLS].map(([number, name]) => [name, number]));

const made = new WeakMap<IpSet, NftSet[]>();

export function setsOfModel({ ipSets }: DataplaneModel): NftSet[] {
  return [...ipSets.values()].flatMap((set) => {
    const sets = made.get(set) ?? FAMILIES.map((family) => setOf(set, family));
    made.set(set, sets);
    return sets;
  });
}

function setOf(set: IpSet, family: IpFamily): NftSet {
  const members = set.members.filter((member) => familyOf(member) === family);
  const name = setName(set, family);
  const interval = name.endsWith("n");
  if (set.kind === "net") return addressSet(name, family, members, interval);
  const byPort = new Map<string, string[]>();
  for (const member of members) {
    const port = member.slice(member.indexOf(",") + 1);
    byPort.set(port, [...(byPort.get(port) ?? []), member]);
  }
  const elements = [...byPort].flatMap(([port, same]) =>
    covering(same.map(netOf)).map((net) => `${prefixText(net)} . ${portText(port)}`),
  );
  const type = `${ADDRESS_TYPE[family]} . inet_proto . inet_service`;
  return { name, kind: "set", type, interval, elements: plain(elements) };
}

/** `tcp:80` with the protocol's number: its name is only known where there is a file of names. */
function portText(port: string): string {
  const [protocol, number] = port.split(":");
  return `${PROTOCOL_NUMBERS.get(protocol!) ?? protocol} . ${number}`;
}

export function addressSet(name: string, family: IpFamily, nets: readonly Net[], interval: boolean): NftSet {
  const own = nets.filter((net) => familyOf(net) === family);
  return { name, kind: "set", type: ADDRESS_TYPE[family], interval, elements: plain(covering(own).map(prefixText)) };
}

/** Who may send from which address, and who is at both ends. */
export function podSets({ endpoints }: DataplaneModel): NftSet[] {
  const pods = [...endpoints.values()];
  const sources = FAMILIES.map((family): NftSet => {
    const elements = pods.flatMap(({ interfaceName, addresses }) =>
      addresses.filter((net) => familyOf(net) === family).map((net) => `${quoted(interfaceName)} . ${prefixText(net)}`),
    );
    const type = `ifname . ${ADDRESS_TYPE[family]}`;
    return { name: `pod-addresses-${family}`, kind: "set", type, interval: false, elements: plain(elements) };
  });
  const pairs = pods.map(({ interfaceName }) => `${quoted(interfaceName)} . ${quoted(interfaceName)}`);
  return [
    ...sources,
    { name: "pod-itself", kind: "set", type: "ifname . ifname", interval: false, elements: plain(pairs) },
  ];
}

export function dispatchMap(name: string, entries: Iterable<readonly [interfaceName: string, chain: string]>): NftSet {
  const elements = new Map([...entries].map(([key, chain]) => [quoted(key), `goto ${chain}`]));
  return { name, kind: "map", type: "ifname : verdict", interval: false, elements };
}

function quoted(name: string): string {
  return `"${name}"`;
}

function plain(elements: readonly string[]): Map<string, string> {
  return new Map(elements.map((element) => [element, ""]));
}
