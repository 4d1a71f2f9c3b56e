import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FlowNames } from "../../src/dataplane/ebpf/flows/flow-names.ts";
import { objectBytes } from "../../src/dataplane/ebpf/programs/objects.ts";
import { u32 } from "../../src/dataplane/ebpf/programs/programs.ts";
import { EbpfServices } from "../../src/dataplane/ebpf/services/ebpf-services.ts";
import { NODE_FIELD, NODE_MODE } from "../../src/gen/bpf/layout.gen.ts";
import type { Kernel } from "../../src/kernel/kernel.ts";
import { service, UDP } from "../ebpf/service-rows.ts";

/** An emulated machine has little memory, and nobody else asks for services there. */
const SMALL = { flows: 1024, old_flows: 1024, fragments: 1024, socket_peers: 1024, socket_choices: 1024 };

/** This process asks for services, in the machine's first network namespace: the one that every kernel knows the number of. */
export async function socketsAreConnected(kernel: Kernel): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "vt-kernels-"));
  const [pins, groups] = [join(directory, "pins"), join(directory, "groups")];
  kernel.mounts.ensure("bpf", pins);
  kernel.mounts.ensure("cgroup2", groups);
  const home = `${groups}${/^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1] ?? "/"}`;
  const group = `${groups}/vt-kernels-${process.pid}`;
  kernel.cgroup.create(group);
  kernel.cgroup.move(group, process.pid);
  const netlink = kernel.netlink();
  netlink.changeLink(1, { up: true });
  netlink.close();
  const load = { pinDirectory: `${pins}/maps`, maxEntries: SMALL };
  kernel.bpf.makePinDirectory(load.pinDirectory);
  const object = kernel.loadObject(objectBytes("socket"), load);
  const map = (name: string) => object.map(name);
  const plane = await EbpfServices.open({
    ...{ kernel, pinDirectory: pins, cgroup: group, load, map },
    ...{ names: new FlowNames(), sweepFlows: async () => {} },
  });
  try {
    map("node").update(u32(NODE_FIELD.NODE_MODE), u32(NODE_MODE.MODE_EBPF));
    await asks(plane);
  } finally {
    await plane.remove();
    object.close();
    kernel.cgroup.move(home, process.pid);
    kernel.cgroup.remove(group);
    for (const path of [groups, pins]) kernel.mounts.unmount(path);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function asks(plane: EbpfServices): Promise<void> {
  const stream = createServer((socket) => socket.end("hello")).listen(0, "127.0.0.1");
  const datagrams = createSocket("udp4", (_message, { port, address }) => datagrams.send("hello", port, address));
  datagrams.bind(0, "127.0.0.1");
  await Promise.all([once(stream, "listening"), once(datagrams, "listening")]);
  const backend = ({ port }: AddressInfo) => [`127.0.0.1:${port}`];
  const web = service("default/web:http/tcp/4", backend(stream.address() as AddressInfo));
  const dns = { protocol: UDP, clusterAddress: "10.96.0.53", port: 53 } as const;
  const names = service("default/dns:dns/udp/4", backend(datagrams.address()), dns);
  const client = createSocket("udp4");
  try {
    const outcomes = [...(await plane.apply({ set: [web, names], remove: [] })), ...(await plane.attach())];
    for (const { failed } of outcomes) if (failed) throw failed;
    const socket = connect(80, "10.96.0.10");
    assert.equal(String((await once(socket, "data"))[0]), "hello");
    assert.equal(socket.remoteAddress, "10.96.0.10", "it is connected to the service, as far as it knows");
    socket.destroy();
    client.send("hello", 53, "10.96.0.53");
    const [, from] = (await once(client, "message")) as [Buffer, AddressInfo];
    assert.deepEqual([from.address, from.port], ["10.96.0.53", 53], "the answer is the service's");
  } finally {
    client.close();
    datagrams.close();
    stream.close();
  }
}
