import assert from "node:assert/strict";
import type { Route, ServicePort } from "../../src/calc/model.ts";
import type { EbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import { allow, deltaOf, NODE, POD_A, POD_B } from "../ebpf/packet-lab.ts";
import { routeTo, servicePort } from "../ebpf/service-lab.ts";
import { type Lab, OPEN, OUTSIDE } from "./lab.ts";
import { Speaker } from "./pod.ts";

const RULES = { aEgress: [allow()], aIngress: [allow()], bIngress: [allow()], bEgress: [allow()] };
const ROUTES: Route[] = [`${NODE.v4}/32`, `${NODE.v6}/128`].map((cidr) => routeTo(cidr, "local-host", "here"));

/** One service a thing that can happen; every backend listens on the open port. */
const SERVICES: ServicePort[] = [
  servicePort("b", [`*${POD_B.v4}:${OPEN}`], { clusterAddress: "10.96.0.10", nodePort: 30080 }),
  servicePort("b6", [`*[${POD_B.v6}]:${OPEN}`], { family: 6, clusterAddress: "fd96::10", nodePort: 30080 }),
  servicePort("a", [`*${POD_A.v4}:${OPEN}`], { clusterAddress: "10.96.0.11" }),
  servicePort("a6", [`*[${POD_A.v6}]:${OPEN}`], { family: 6, clusterAddress: "fd96::11" }),
  servicePort("out", [`${OUTSIDE.v4}:${OPEN}`], { clusterAddress: "10.96.0.12" }),
  servicePort("none", [], { clusterAddress: "10.96.0.13", nodePort: 30081 }),
  servicePort("none6", [], { family: 6, clusterAddress: "fd96::13", nodePort: 30081 }),
];

/** Real connections to services: what programs write into packets is what the ends' own stacks accept. */
export async function servicesAnswer(scene: Lab, plane: EbpfDataplane): Promise<void> {
  const { a, b, outside } = scene.speakers;
  const { objects } = await plane.apply({
    ...deltaOf(RULES),
    routes: { set: ROUTES, remove: [] },
    services: { set: SERVICES, remove: [] },
  });
  for (const { id, failed } of objects) if (failed) throw new Error(`${id}: ${failed.message}`);
  const asked = [
    [a, "10.96.0.10", 80],
    [a, "fd96::10", 80],
    [a, "10.96.0.11", 80],
    [a, "fd96::11", 80],
    [b, "10.96.0.11", 80],
    [a, "10.96.0.12", 80],
    [a, NODE.v4, 30080],
    [a, NODE.v6, 30080],
    [outside, NODE.v4, 30080],
    [outside, NODE.v6, 30080],
  ] as const;
  for (const [who, address, port] of asked) {
    const connection = await who.open(address, port);
    await connection.answers();
    await connection.close();
  }
  // Refused at once, by an answer made in the program.
  for (const [who, address, port] of [
    [a, "10.96.0.13", 80],
    [a, "fd96::13", 80],
    [a, "10.96.0.10", 81],
    [outside, NODE.v4, 30081],
    [outside, NODE.v6, 30081],
  ] as const) {
    assert.equal(await who.tries(address, port), "ECONNREFUSED", `${address} port ${port}`);
  }
  await nodeAsks(scene);
  // A connection goes on while nobody looks after the programs, and through a drain nobody takes it over in.
  const long = await a.open("10.96.0.10", 80);
  await long.answers();
  plane.setMode("Draining", 1);
  await long.answers();
  plane.setMode("Active");
  await long.answers();
  await long.close();
}

/** A process of the node whose sockets nobody hooked: its packets are turned to the pod where they leave, and the answers to it where they arrive. */
async function nodeAsks(scene: Lab): Promise<void> {
  scene.inside(scene.node, (netlink) => {
    const device = netlink.link("eth0")!.index;
    const common = { type: "unicast", table: MAIN_TABLE, protocol: 80, device } as const;
    netlink.replaceRoute({ ...common, destination: "10.96.0.0/16", gateway: OUTSIDE.v4 });
    netlink.replaceRoute({ ...common, destination: "fd96::/64", gateway: OUTSIDE.v6 });
  });
  const node = new Speaker(scene.node);
  try {
    for (const address of ["10.96.0.10", "fd96::10"]) {
      const connection = await node.open(address, 80);
      await connection.answers();
      await connection.close();
    }
  } finally {
    await node.close();
  }
}
