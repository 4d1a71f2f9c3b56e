import { expect, it } from "vitest";
import { readIpamReport } from "../../src/api/protocol/ipam-report.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { IPAM_BLOCKS, typeOf } from "../../src/controllers/stored-kinds.ts";
import { fakeClock } from "../../src/kit/fake-clock.ts";
import { addNode, type ControllersLab, controllersLab, eventually } from "./controllers-lab.ts";

const OWN = { namespace: "vendor-system", name: "vendor-kube-controllers" };

async function createPod({ client }: ControllersLab, name: string, address: string, extra: object = {}): Promise<void> {
  const spec = { nodeName: "a", containers: [{ name: "main", image: "web" }], ...extra };
  const ref = { namespace: "default", name };
  await client.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: ref, spec });
  const status = { phase: "Running", podIP: address, podIPs: [{ ip: address }] };
  await client.patch(PODS, ref, { type: "merge", patch: { status } }, { subresource: "status" });
}

it("duplicate and leaked addresses and blocks without a node are in the annotations of the controllers' own pod", async () => {
  const world = await controllersLab();
  const clock = fakeClock(1_700_000_000_000);
  const { client } = world;
  await addNode(client, "a");
  const spec = { containers: [{ name: "main", image: "vendor" }] };
  await client.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: OWN, spec });
  const attributes = [{ handle_id: "gone", secondary: { namespace: "default", pod: "gone", node: "a" } }];
  const block = (cidr: string, node: string, allocations: (number | null)[]) => ({
    ...typeOf(IPAM_BLOCKS),
    metadata: { name: cidr.replace(/[./]/g, "-") },
    spec: { cidr, affinity: `host:${node}`, allocations, unallocated: [0, 1, 2], attributes },
  });
  await client.create(IPAM_BLOCKS, block("10.0.0.0/30", "a", [null, null, null, 0]));
  await client.create(IPAM_BLOCKS, block("10.0.0.4/30", "lost", [null, null, null, null]));
  await createPod(world, "one", "10.0.0.1");
  await createPod(world, "two", "10.0.0.1");
  // No duplicates: the node's own address, an address of another network, a pod that is done.
  await createPod(world, "host-one", "10.0.0.2", { hostNetwork: true });
  await createPod(world, "host-two", "10.0.0.2", { hostNetwork: true });
  for (const name of ["foreign-one", "foreign-two"]) await createPod(world, name, "192.168.0.1");
  world.start({ clock });
  const report = async () => {
    await clock.advance(15_000);
    return readIpamReport((await client.get(PODS, OWN)).metadata.annotations);
  };
  expect(await eventually(report, (found) => found !== undefined)).toEqual({
    duplicates: [{ address: "10.0.0.1", pods: ["default/one", "default/two"] }],
    leakedAddresses: 1,
    blocksWithoutNode: 1,
    servicesWithoutAddress: [],
  });
  await client.delete(PODS, { namespace: "default", name: "two" }, { gracePeriodSeconds: 0 });
  await eventually(report, (found) => (found?.duplicates ?? []).length === 0);
  await world.close();
});
