import { errnoOf } from "../errors.ts";
import type { NetlinkSocket } from "./netlink.ts";
import {
  AF_INET,
  AF_INET6,
  addressText,
  attribute,
  FLAGS,
  type NetlinkMessage,
  prefixBytes,
  readAttributes,
  reader,
  text,
  textOf,
  u32,
} from "./netlink-message.ts";
import type { NetlinkPort, RoutingRule } from "./netlink-port.ts";

const MESSAGE = { set: 32, remove: 33, get: 34 } as const;
const ATTR = { destination: 1, source: 2, inputInterface: 3, priority: 6, mark: 10, table: 15, mask: 16 } as const;
const TO_TABLE = 1;
const WHOLE_MARK = 0xffff_ffff;

type RulePart = Pick<NetlinkPort, "rules" | "addRule" | "deleteRule">;

export function rulesOn(socket: NetlinkSocket): RulePart {
  return {
    rules: () =>
      [AF_INET, AF_INET6].flatMap((family) => {
        const header = Buffer.alloc(12);
        header.writeUInt8(family, 0);
        return socket.dump("listing rules", MESSAGE.get, header).filter(leadsToTable).map(readRule);
      }),
    addRule: (rule) => {
      try {
        socket.request(`rule ${rule.priority}`, MESSAGE.set, FLAGS.create | FLAGS.exclusive, ...encode(rule));
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
      }
    },
    deleteRule: (rule) => {
      try {
        socket.request(`deleting rule ${rule.priority}`, MESSAGE.remove, 0, ...encode(rule));
        return true;
      } catch (error) {
        if (errnoOf(error) === "ENOENT") return false;
        throw error;
      }
    },
  };
}

function leadsToTable({ body }: NetlinkMessage): boolean {
  return body.readUInt8(7) === TO_TABLE;
}

function encode(rule: RoutingRule): Buffer[] {
  const source = rule.source === undefined ? undefined : prefixBytes(rule.source);
  const destination = rule.destination === undefined ? undefined : prefixBytes(rule.destination);
  const header = Buffer.alloc(12);
  header.writeUInt8(rule.family === 4 ? AF_INET : AF_INET6, 0);
  header.writeUInt8(destination?.length ?? 0, 1);
  header.writeUInt8(source?.length ?? 0, 2);
  header.writeUInt8(rule.table < 256 ? rule.table : 0, 4);
  header.writeUInt8(TO_TABLE, 7);
  const parts = [header, u32(ATTR.table, rule.table), u32(ATTR.priority, rule.priority)];
  if (destination) parts.push(attribute(ATTR.destination, destination.bytes));
  if (source) parts.push(attribute(ATTR.source, source.bytes));
  if (rule.inputInterface !== undefined) parts.push(text(ATTR.inputInterface, rule.inputInterface));
  if (rule.mark !== undefined) parts.push(u32(ATTR.mark, rule.mark), u32(ATTR.mask, rule.mask ?? WHOLE_MARK));
  return parts;
}

const readRule = reader("a rule", ({ body }: NetlinkMessage): RoutingRule => {
  const attributes = readAttributes(body, 12);
  const [source, destination] = [attributes.get(ATTR.source), attributes.get(ATTR.destination)];
  const mark = attributes.get(ATTR.mark)?.readUInt32LE(0);
  const mask = attributes.get(ATTR.mask)?.readUInt32LE(0);
  return {
    family: body.readUInt8(0) === AF_INET ? 4 : 6,
    priority: attributes.get(ATTR.priority)?.readUInt32LE(0) ?? 0,
    table: attributes.get(ATTR.table)?.readUInt32LE(0) ?? body.readUInt8(4),
    ...(mark === undefined ? {} : { mark }),
    ...(mask === undefined || mask === WHOLE_MARK || mark === undefined ? {} : { mask }),
    ...(source ? { source: `${addressText(source)}/${body.readUInt8(2)}` } : {}),
    ...(destination ? { destination: `${addressText(destination)}/${body.readUInt8(1)}` } : {}),
    ...(attributes.has(ATTR.inputInterface) ? { inputInterface: textOf(attributes.get(ATTR.inputInterface)) } : {}),
  };
});
