import { inverse } from "../conntrack-message.ts";
import type { ConntrackPort, Flow, FlowTuple } from "../conntrack-port.ts";
import { kernelError } from "../errors.ts";
import type { SocketsPort } from "../sockets-port.ts";
import type { FakeNamespace } from "./fake-world.ts";

const TCP = 6;

export function fakeConntrack(namespace: FakeNamespace): ConntrackPort {
  const find = (packets: FlowTuple) =>
    namespace.flows.find((flow) => [flow.original, flow.reply].some((way) => keyOf(way) === keyOf(packets)));
  const change = (flow: Flow, changed: Flow | undefined) => {
    namespace.flows = namespace.flows.flatMap((other) => (other === flow ? (changed ? [changed] : []) : [other]));
  };
  return {
    flows: async ({ family, mark } = {}) =>
      namespace.flows.filter(
        (flow) =>
          (mark === undefined || flow.mark === mark) &&
          (family === undefined || flow.original.source.includes(":") === (family === 6)),
      ),
    find,
    insert: ({ original, destinationNat, sourceNat, mark = 0, timeout, tcpState }) => {
      const plain = inverse(original);
      const reply: FlowTuple = {
        ...plain,
        ...(destinationNat ? { source: destinationNat.address, sourcePort: destinationNat.port } : {}),
        ...(sourceNat ? { destination: sourceNat.address, destinationPort: sourceNat.port } : {}),
      };
      if (find(original) || find(reply)) throw kernelError("inserting a flow", "EEXIST");
      namespace.flows.push({
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

function keyOf(tuple: FlowTuple): string {
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
