import { inverse } from "../conntrack/conntrack-message.ts";
import type { ConntrackEntry, ConntrackPort, ConntrackTuple } from "../conntrack/conntrack-port.ts";
import type { SocketsPort } from "../conntrack/sockets-port.ts";
import { kernelError } from "../errors.ts";
import type { FakeNamespace } from "./fake-state.ts";

const TCP = 6;

export function fakeConntrack(namespace: FakeNamespace): ConntrackPort {
  const find = (packets: ConntrackTuple) =>
    namespace.conntrack.find((flow) => [flow.original, flow.reply].some((way) => keyOf(way) === keyOf(packets)));
  const change = (flow: ConntrackEntry, changed: ConntrackEntry | undefined) => {
    namespace.conntrack = namespace.conntrack.flatMap((other) =>
      other === flow ? (changed ? [changed] : []) : [other],
    );
  };
  return {
    fill: () => ({ entries: namespace.conntrack.length, max: 262_144 }),
    list: async ({ family, mark, markMask = 0xffff_ffff } = {}) =>
      namespace.conntrack.filter(
        (flow) =>
          (mark === undefined || (flow.mark & markMask) >>> 0 === mark) &&
          (family === undefined || flow.original.source.includes(":") === (family === 6)),
      ),
    find,
    insert: ({ original, destinationNat, sourceNat, mark = 0, timeout, tcpState }) => {
      const plain = inverse(original);
      const reply: ConntrackTuple = {
        ...plain,
        ...(destinationNat ? { source: destinationNat.address, sourcePort: destinationNat.port } : {}),
        ...(sourceNat ? { destination: sourceNat.address, destinationPort: sourceNat.port } : {}),
      };
      if (find(original) || find(reply)) throw kernelError("inserting a conntrack entry", "EEXIST");
      namespace.conntrack.push({
        original,
        reply,
        mark,
        timeout,
        seenReply: true,
        assured: true,
        sourceNat: sourceNat !== undefined,
        destinationNat: destinationNat !== undefined,
        tcpState: original.protocol === TCP ? (tcpState ?? "established") : undefined,
        packets: undefined,
      });
    },
    update: (packets, { mark, timeout }) => {
      const flow = find(packets);
      if (flow) change(flow, { ...flow, mark: mark ?? flow.mark, timeout: timeout ?? flow.timeout });
      return flow !== undefined;
    },
    delete: (packets) => {
      const flow = find(packets);
      if (flow) change(flow, undefined);
      return flow !== undefined;
    },
    close: () => {},
  };
}

function keyOf(tuple: ConntrackTuple): string {
  const { protocol, source, sourcePort, destination, destinationPort, icmp } = tuple;
  return JSON.stringify([protocol, source, sourcePort, destination, destinationPort, icmp?.type, icmp?.code]);
}

export function fakeSockets(namespace: FakeNamespace): SocketsPort {
  return {
    connected: (protocol, family) =>
      namespace.sockets.filter(
        (socket) => socket.protocol === protocol && socket.source.includes(":") === (family === 6),
      ),
    destroy: ({ protocol, destination, destinationPort, cookies }) => {
      const before = namespace.sockets.length;
      namespace.sockets = namespace.sockets.filter(
        (socket) =>
          socket.protocol !== protocol ||
          socket.destination !== destination ||
          (destinationPort !== undefined && socket.destinationPort !== destinationPort) ||
          (cookies !== undefined && !cookies.has(socket.cookie)),
      );
      return before - namespace.sockets.length;
    },
    close: () => {},
  };
}
