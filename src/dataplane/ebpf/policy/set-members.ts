import type { IpSet } from "../../../calc/model.ts";
import { setKeyLayout, setMemberLayout } from "../../../gen/bpf/layout.gen.ts";
import { netBytes } from "../net-bytes.ts";
import { setNumbers } from "./match-code.ts";

const PROTOCOLS: Record<string, number> = { tcp: 6, udp: 17, sctp: 132 };

/** Bits of a key before the address: they are always compared. */
const BEFORE_ADDRESS = (setKeyLayout.at.address - 4) * 8;

export const MEMBER = setMemberLayout.write({ present: 1 });

/** A member of a set as a key of the map of all sets. */
export function memberKey(id: string, kind: IpSet["kind"], member: string): Buffer {
  const [net, ports] = kind === "net" ? [member, undefined] : split(member, ",");
  const [protocol, port] = ports === undefined ? ["", "0"] : split(ports, ":");
  const { prefixLength, bytes } = netBytes(net);
  const { high, low } = setNumbers(id);
  return setKeyLayout.write({
    prefixLength: BEFORE_ADDRESS + prefixLength,
    setHigh: high,
    setLow: low,
    port: Number(port),
    protocol: PROTOCOLS[protocol] ?? 0,
    address: bytes,
  });
}

function split(text: string, by: string): [string, string] {
  const at = text.indexOf(by);
  return [text.slice(0, at), text.slice(at + 1)];
}
