import type { Rule } from "../../src/calc/model.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import { allow, type PacketLab } from "../../test/ebpf/packet-lab.ts";
import { PEER, ServiceLab, servicePort } from "../../test/ebpf/service-lab.ts";

export const SERVICE = "10.96.0.10";
export const OVERLAY_POD = "10.65.9.88";
export const HTTP = 80;
export const DNS = 53;
export const BACKEND_PORT = 8080;
export const DENIED_PORT = 81;
/** Enough that most entries of the table are in no cache of the processor, as on a node. */
export const CONNTRACK_ENTRIES = 262_144;

/** The node of the packet tests, with a Service, and a pod of another node that is reached through the overlay. */
export async function openProfileLab(): Promise<PacketLab> {
  const lab = await ServiceLab.open({}, { flows: CONNTRACK_ENTRIES });
  try {
    const web = servicePort("web", [`*10.65.0.2:${BACKEND_PORT}`], { clusterAddress: SERVICE, port: HTTP });
    const [out, into] = [egressRules(), ingressRules()];
    await lab.serve([web], { rules: { aEgress: out, aIngress: into, bEgress: out, bIngress: into } });
    addOverlayRoute(lab.packets);
    return lab.packets;
  } catch (error) {
    await lab.close();
    throw error;
  }
}

/** Five rules on each side: what is denied has met all of them. */
function egressRules(): Rule[] {
  return [...rulesOfOthers(4), allow()];
}

function ingressRules(): Rule[] {
  const web = allow({ protocol: 6, dstPorts: [HTTP, BACKEND_PORT].map((port) => [port, port]) });
  return [...rulesOfOthers(3), allow({ protocol: 17, dstPorts: [[DNS, DNS]] }), web];
}

function rulesOfOthers(count: number): Rule[] {
  return Array.from({ length: count }, (_, index) => allow({ protocol: 6, dstPorts: [[index + 1, index + 1]] }));
}

function addOverlayRoute(lab: PacketLab): void {
  const netlink = lab.kernel.netlink(lab.netns);
  const device = lab.ifindex("overlay");
  const route = { destination: `${OVERLAY_POD}/32`, device, type: "unicast", table: MAIN_TABLE, protocol: 80 } as const;
  netlink.replaceRoute(route);
  netlink.replaceNeighbour({ device, address: OVERLAY_POD, mac: PEER.mac });
  netlink.close();
}
