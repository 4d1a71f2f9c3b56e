import assert from "node:assert/strict";
import type { Rule } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { createEbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import { createNftDataplane } from "../../src/dataplane/nft/nft-dataplane.ts";
import type { KernelFeatures } from "../../src/kernel/bpf/features.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import { PolicyLab } from "../ebpf/policy-lab.ts";
import { dataplaneLifecycle } from "./dataplane-scenarios.ts";
import { expectedFeatures } from "./expected-features.ts";
import { flowsAreCounted } from "./flow-scenario.ts";
import { poolsTravelInIpip } from "./ipip-scenario.ts";
import { Lab, OVERLAY } from "./lab.ts";
import { servicesAnswer } from "./service-scenarios.ts";
import { socketsAreConnected } from "./socket-scenarios.ts";
import { clientsGoThroughTheTunnel } from "./tunnel-scenario.ts";

/** Returns why it does not apply here, if it does not. */
export interface Scenario {
  name: string;
  run(note: (text: string) => void): Promise<string | undefined>;
}

export const SCENARIOS: Scenario[] = [
  { name: "what this kernel can do is found out", run: features },
  { name: "the eBPF plane lives, by what this kernel has for attaching", run: () => ebpf(realKernel()) },
  { name: "the eBPF plane lives on clsact where there are links too", run: ebpfWithoutLinks },
  { name: "the eBPF plane lives without redirects and ring buffers", run: () => ebpf(less(realKernel(), PLAIN)) },
  { name: "services answer real connections, translated packet by packet", run: () => services(realKernel()) },
  {
    name: "services answer where there are neither links nor redirects",
    run: () => services(less(realKernel(), PLAIN)),
  },
  { name: "flow logs count real connections, by what this kernel has", run: () => flows(realKernel()) },
  { name: "flow logs count real connections without iterators", run: () => flows(less(realKernel(), PLAIN)) },
  { name: "clients of a service keep their address through the tunnel", run: tunnel },
  { name: "sockets of the node's own processes are connected to backends", run: sockets },
  { name: "the nftables data plane lives", run: nft },
  {
    name: "pods of three subnets speak in IPIP, and go on while the pool changes to VXLAN",
    run: () => poolsTravelInIpip(realKernel()),
  },
  { name: "a policy of many programs is accepted, and its last rule decides", run: largePolicy },
];

async function features(note: (text: string) => void): Promise<undefined> {
  const found = await realKernel().features();
  note(JSON.stringify(found));
  assert.deepEqual({ ...found, ...expectedFeatures() }, found);
  return undefined;
}

let scene: Lab | undefined;

/** All planes live on one node, one after the other: starting somebody who speaks is slow where a processor is emulated. */
async function onScene(act: (scene: Lab) => Promise<void>): Promise<undefined> {
  scene ??= await Lab.open(realKernel());
  try {
    await act(scene);
  } catch (error) {
    // What went wrong may have left something behind; the next story gets a node of its own.
    await closeLab();
    throw error;
  }
  return undefined;
}

export async function closeLab(): Promise<void> {
  await scene?.close();
  scene = undefined;
}

function ebpf(kernel: Kernel): Promise<undefined> {
  return onScene(async (there) => {
    await dataplaneLifecycle(there, {
      open: ({ node, directory }) =>
        createEbpfDataplane({ kernel, netns: node, pinDirectory: `${directory}/ours`, overlay: OVERLAY }),
      denied: /drop-policy-workload-ingress/,
    });
    assert.deepEqual(kernel.bpf.pins(there.directory), [], "nothing is left pinned");
    there.inside(there.node, (netlink) => {
      const filters = netlink.links().flatMap(({ index }) => netlink.filters(index, "ingress"));
      assert.deepEqual(filters, [], "no filter is left");
    });
  });
}

function flows(kernel: Kernel): Promise<undefined> {
  return onScene(async (there) => {
    const { node, directory } = there;
    const plane = await createEbpfDataplane({
      ...{ kernel, netns: node, pinDirectory: `${directory}/ours`, overlay: OVERLAY },
    });
    try {
      await flowsAreCounted(there, plane);
    } finally {
      await plane.remove();
      await plane.close();
    }
  });
}

function services(kernel: Kernel): Promise<undefined> {
  return onScene(async (there) => {
    const { node, directory } = there;
    const plane = await createEbpfDataplane({
      ...{ kernel, netns: node, pinDirectory: `${directory}/ours`, overlay: OVERLAY },
    });
    try {
      await servicesAnswer(there, plane);
    } finally {
      await plane.remove();
      await plane.close();
    }
  });
}

async function ebpfWithoutLinks(): Promise<string | undefined> {
  if (!(await realKernel().features()).tcx) return "this kernel has nothing else";
  return ebpf(less(realKernel(), { tcx: false }));
}

/** As on kernels older than any we can run: calls of what is missing are taken out of the programs. */
const PLAIN = { redirectPeer: false, redirectNeighbour: false, ringBuffer: false, mapIterators: false, tcx: false };

/** The same kernel, found out to be able to do less. */
function less(kernel: Kernel, without: Partial<KernelFeatures>): Kernel {
  return { ...kernel, features: async () => ({ ...(await kernel.features()), ...without }) };
}

async function tunnel(): Promise<undefined> {
  await clientsGoThroughTheTunnel(realKernel());
  return undefined;
}

async function sockets(): Promise<undefined> {
  await socketsAreConnected(realKernel());
  return undefined;
}

async function nft(): Promise<string | undefined> {
  const kernel = realKernel();
  try {
    kernel.nft().close();
  } catch (error) {
    return (error as Error).message;
  }
  return onScene(async (there) => {
    const open = async ({ node }: Lab) => createNftDataplane({ kernel, table: "story", netns: node });
    await dataplaneLifecycle(there, { open, denied: /^the end of tier default / });
  });
}

async function largePolicy(note: (text: string) => void): Promise<undefined> {
  const SET = "s00000000000000ff";
  const rules = Array.from({ length: 1_500 }, (_, index): Rule => {
    const match = { srcSets: [SET], protocol: 6, dstPorts: [[index + 1, index + 1] as [number, number]] };
    return { id: `p;ingress;${index}`, action: "deny", ...match };
  });
  const model = new ModelCopy();
  const ingress: Rule[] = [...rules, { id: "p;ingress;last", action: "allow", protocol: 6 }];
  model.policies.set("p", { id: "p", tier: "default", order: null, ingress, egress: [] });
  model.ipSets.set(SET, { id: SET, kind: "net", members: ["10.0.0.0/8"], meaning: "" });
  const tiers = [{ name: "default", endAction: "deny" as const, policies: ["p"] }];
  const lab = new PolicyLab();
  try {
    const started = Date.now();
    const hook = { host: null, workload: { id: "a", direction: "ingress" as const, tiers, profiles: [] } };
    const program = lab.install(model, hook);
    note(`${ingress.length} rules are ${program.slots.length} programs, loaded in ${Date.now() - started} ms`);
    const ask = (destinationPort: number) => {
      const ends = { source: "10.0.0.1", destination: "10.0.0.2", sourcePort: 40_000, destinationPort };
      return lab.verdictOf(program, { ipVersion: 4, protocol: 6, ...ends }, { fromHost: false, toHost: false }).action;
    };
    assert.deepEqual([1, 750, 1_500, 1_501].map(ask), ["deny", "deny", "deny", "allow"]);
    assert.ok(program.slots.length > 1);
  } finally {
    lab.close();
  }
  return undefined;
}
