import { typeOf } from "../../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../../src/api/names.ts";
import type { KubeObject } from "../../../src/api/object.ts";
import { dataplaneConfiguration } from "../../../src/api/resources/dataplane-configuration.ts";
import { hostEndpoint } from "../../../src/api/resources/host-endpoint.ts";
import { globalNetworkPolicy } from "../../../src/api/resources/network-policy.ts";
import { placesOf } from "../../../src/api/resources/resource.ts";
import type { Client } from "../../../src/cluster/client.ts";
import { NETWORK_POLICIES } from "../../../src/cluster/kinds.ts";
import { realKernel } from "../../../src/kernel/kernel.ts";
import type { Netns } from "../../../src/kernel/netns/netns-port.ts";
import { type LabNode, type LabPod, type NodeLab, nodeLab, until } from "../../agent/node-lab.ts";
import { MAC, udp } from "../../ebpf/frames.ts";
import type { Ends } from "./attempt.ts";
import { ethernet, packet, TYPE } from "./build-frame.ts";
import {
  type Admits,
  FrameVerdict,
  OPEN_PORTS,
  OPEN_TCP,
  OPEN_UDP,
  type Place,
  type Speaker,
} from "./frame-verdict.ts";
import { DeliveryTap, FrameTap, macOf, Sender } from "./raw-sockets.ts";

const PODS = ["attacker", "jailed", "victim", "closed", "open", "far"] as const;
type PodName = (typeof PODS)[number];
export const DESTINATIONS = ["victim", "closed", "open", "far", "node-1", "node-2", "outside"] as const;
const HOST_LINK_LOCAL = "fe80::ecee:eeff:feee:eeee";
/** The port the fences come from. */
const FENCE_PORT = 9999;

interface Ear {
  place: Place;
  tap: FrameTap | DeliveryTap;
  /** Hears only frames with a VLAN tag, which is not among the bytes that the other one reads. */
  tagged?: FrameTap;
}

export interface Figures {
  sent: number;
  /** By the sender's own kernel: too short for a header, or larger than any interface takes. */
  refused: number;
  heard: Record<string, number>;
  denied: string[];
}

/**
 * Two nodes with an overlay. On the first: `attacker`, which no egress policy holds, `jailed`, which may only reach the open ports, and three
 * pods that hear: `victim` admits the open ports, `closed` nothing, `open` everything. `far` is as `victim`, on the other node. Both nodes
 * admit one port by host endpoint policy, also from their own pods. The wire is what leaves the first node.
 */
export class FrameLab {
  readonly #lab: NodeLab;
  readonly #pods: Record<PodName, LabPod>;
  readonly #senders: Record<"attacker" | "jailed", Sender>;
  readonly #ears: Ear[];
  readonly #verdict = new FrameVerdict();
  #speaker: Speaker;
  /** Heard, and not admitted by what was known then. */
  readonly #suspects: { place: string; verdict: () => string | undefined }[] = [];
  #fences = 0;
  #arrived = new Set<string>();
  #fence = Buffer.alloc(0);
  /** Bytes that must not be heard, whatever packet they are in. */
  #forbidden: Buffer | undefined;
  figures: Figures = { sent: 0, refused: 0, heard: {}, denied: [] };

  static async open(bpf: boolean): Promise<FrameLab> {
    const lab = await nodeLab({
      bpf,
      pools: [
        { cidr: "10.88.0.0/24", vxlanMode: "Always", blockSize: 28 },
        { cidr: "fd88::/112", vxlanMode: "Always" },
      ],
    });
    try {
      await writePolicies(lab.client);
      await Promise.all(lab.nodes.map((node) => node.start()));
      const [one, two] = lab.nodes as [LabNode, LabNode];
      const pods = {} as Record<PodName, LabPod>;
      for (const name of PODS) pods[name] = await lab.addPod(name, name === "far" ? two : one, { app: name });
      return new FrameLab(lab, pods);
    } catch (error) {
      await lab.close();
      throw error;
    }
  }

  private constructor(lab: NodeLab, pods: Record<PodName, LabPod>) {
    this.#lab = lab;
    this.#pods = pods;
    this.#senders = {
      attacker: new Sender(pods.attacker.netns, "eth0"),
      jailed: new Sender(pods.jailed.netns, "eth0"),
    };
    this.#ears = this.#makeEars();
    this.#speaker = this.#speakerOf("attacker");
  }

  #speakerOf(name: "attacker" | "jailed"): Speaker {
    return { name, addresses: this.#pods[name].addresses, egress: name === "attacker" ? "all" : OPEN_PORTS };
  }

  #makeEars(): Ear[] {
    const [one, two] = this.#lab.nodes as [LabNode, LabNode];
    const { outside } = this.#lab;
    const pod = (name: PodName, ingress: Admits): Ear => {
      const { netns, node, addresses } = this.#pods[name];
      const neighbour = { mac: MAC.host, addresses: [HOST_LINK_LOCAL, "169.254.1.1", ...addressesOf(node.netns)] };
      return {
        place: { name, addresses, ingress, neighbour, masquerade: [], tunnelsFrom: [] },
        tap: new FrameTap(netns, "eth0"),
        tagged: new FrameTap(netns, "eth0", { onlyTagged: true }),
      };
    };
    const everyone = [...Object.values(this.#pods), ...this.#lab.nodes].map(({ netns }) => addressesOf(netns));
    const node = ({ name, netns }: LabNode, masquerade: readonly string[], other: LabNode): Ear => {
      const neighbour = {
        mac: "",
        addresses: [...everyone.flat(), ...addressesOf(outside.netns)],
        linkLocal: true as const,
      };
      const place = { name, addresses: addressesOf(netns), ingress: [`17/${OPEN_UDP}`], neighbour, masquerade };
      return { place: { ...place, tunnelsFrom: Object.values(other.addresses) }, tap: new DeliveryTap(netns) };
    };
    const uplink = { mac: macOf(one.netns, "eth0"), addresses: [...addressesOf(one.netns), "::"] };
    return [
      pod("victim", OPEN_PORTS),
      pod("closed", "none"),
      pod("open", "all"),
      pod("far", OPEN_PORTS),
      node(one, [], two),
      node(two, Object.values(one.addresses), one),
      {
        place: {
          name: "wire",
          addresses: [],
          ingress: "all",
          neighbour: uplink,
          masquerade: Object.values(one.addresses),
          tunnelsFrom: Object.values(one.addresses),
        },
        tap: new FrameTap(outside.netns, "port1"),
        tagged: new FrameTap(outside.netns, "port1", { onlyTagged: true }),
      },
    ];
  }

  address(of: string, family: 4 | 6): string {
    const node = [...this.#lab.nodes, this.#lab.outside].find(({ name }) => name === of);
    if (node) return family === 4 ? node.addresses.v4 : node.addresses.v6;
    return this.#pods[of as PodName].addresses[family === 4 ? 0 : 1]!;
  }

  ends(by: "attacker" | "jailed", to: string, family: 4 | 6): Ends {
    const others = [
      "victim",
      "closed",
      "open",
      "far",
      "node-1",
      "node-2",
      "outside",
      by === "jailed" ? "attacker" : "jailed",
    ];
    return {
      source: this.address(by, family),
      destination: this.address(to, family),
      ethernet: { to: MAC.host, from: this.#senders[by].mac },
      others: Object.fromEntries(others.map((name) => [name, this.address(name, family)])),
      victimMac: macOf(this.#pods.victim.netns, "eth0"),
    };
  }

  /** From now on what is heard is this pod's: what the other one sent has arrived. */
  async speakAs(name: "attacker" | "jailed"): Promise<void> {
    await this.fence();
    this.#speaker = this.#speakerOf(name);
    await this.fence();
  }

  send(frame: Buffer, offload?: Buffer): void {
    const sender = this.#senders[this.#speaker.name as "attacker" | "jailed"];
    this.#verdict.sends(frame, this.#speaker);
    if (sender.send(frame, offload)) this.figures.sent++;
    else this.figures.refused++;
  }

  /** As a pod that is not the speaker. What it says is not known to the verdict: its bytes must not be heard. */
  sendForged(by: "attacker" | "jailed", frame: Buffer, forbidden: Buffer): void {
    this.#forbidden = forbidden;
    if (this.#senders[by].send(frame)) this.figures.sent++;
  }

  /** Takes what was heard so far. */
  #listen(): void {
    const speaker = this.#speaker;
    for (const { place, tap, tagged } of this.#ears) {
      const by = `${place.name} heard of ${speaker.name}`;
      tagged?.drain((frame) =>
        this.figures.denied.push(`${by}: a VLAN tag (${frame.subarray(0, 64).toString("hex")})`),
      );
      const note = (bytes: Buffer, verdict: () => string | undefined) => {
        this.figures.heard[place.name] = (this.figures.heard[place.name] ?? 0) + 1;
        if (this.#fence.length > 0 && bytes.includes(this.#fence)) this.#arrived.add(place.name);
        if (this.#forbidden && bytes.includes(this.#forbidden)) this.figures.denied.push(`${by}: ${this.#forbidden}`);
        if (verdict() !== undefined) this.#suspects.push({ place: place.name, verdict });
      };
      if (tap instanceof FrameTap)
        tap.drain((frame) => note(frame, () => this.#verdict.ofFrame(frame, place, speaker)));
      else tap.drain((one) => note(one.bytes, () => this.#verdict.ofDelivery(one, place, speaker)));
    }
  }

  /** What was sent has arrived, or never will: datagrams that policy admits, sent after it, are there in every place, in both families. */
  async fence(): Promise<void> {
    const name = this.#speaker.name as "attacker" | "jailed";
    for (const family of [4, 6] as const) {
      this.#fence = Buffer.from(`fence ${this.#fences++}.`);
      this.#arrived.clear();
      const wanted = ["victim", "open", "far", "node-1", "node-2", "outside"];
      const isHere = (to: string) => this.#arrived.has(to === "outside" ? "wire" : to);
      await until(
        () => {
          for (const to of wanted.filter((one) => !isHere(one))) {
            const { source, destination, ethernet: link } = this.ends(name, to, family);
            const datagram = packet(source, destination, udp(FENCE_PORT, OPEN_UDP, this.#fence.toString()));
            this.#senders[name].send(ethernet(link, family === 4 ? TYPE.v4 : TYPE.v6, datagram));
          }
          this.#listen();
          return wanted.every(isHere);
        },
        () => `of IPv${family} from ${name} only ${[...this.#arrived]} heard`,
      );
    }
    this.#fence = Buffer.alloc(0);
    // One place may have been read before another: what an answer belongs to is known only now.
    for (const { place, verdict } of this.#suspects.splice(0)) {
      const why = verdict();
      if (why !== undefined) this.figures.denied.push(`${place} heard of ${name}: ${why}`);
    }
  }

  async close(): Promise<void> {
    for (const { tap, tagged } of this.#ears) {
      tap.close();
      tagged?.close();
    }
    for (const sender of Object.values(this.#senders)) sender.close();
    await this.#lab.close();
  }
}

function addressesOf(netns: Netns): string[] {
  const netlink = realKernel().netlink(netns);
  try {
    return netlink.addresses().map(({ address }) => address.split("/")[0]!);
  } finally {
    netlink.close();
  }
}

const stored = {
  endpoints: placesOf(hostEndpoint, vendorNames).stored,
  policies: placesOf(globalNetworkPolicy, vendorNames).stored,
  settings: placesOf(dataplaneConfiguration, vendorNames).stored,
};

async function writePolicies(client: Client): Promise<void> {
  // Without failsafe ports: what the nodes admit is what the one policy says. Pods' packets to their own node go through it, too.
  const spec = { defaultEndpointToHostAction: "Return", failsafeInboundHostPorts: [], failsafeOutboundHostPorts: [] };
  await client.patch(stored.settings, { name: "default" }, { type: "merge", patch: { spec } });
  for (const node of ["node-1", "node-2"]) {
    await client.create(stored.endpoints, {
      ...typeOf(stored.endpoints),
      metadata: { name: node, labels: { role: "node" } },
      spec: { node, interfaceName: "*" },
    });
  }
  await client.create(stored.policies, {
    ...typeOf(stored.policies),
    metadata: { name: "default.nodes" },
    spec: {
      ...{ tier: "default", selector: "role == 'node'", types: ["Ingress"] },
      ingress: [{ action: "Allow", protocol: "UDP", destination: { ports: [OPEN_UDP] } }],
    },
  });
  const ports = [
    { protocol: "TCP", port: OPEN_TCP },
    { protocol: "UDP", port: OPEN_UDP },
  ];
  const speakers = [
    { podSelector: { matchExpressions: [{ key: "app", operator: "In", values: ["attacker", "jailed"] }] } },
  ];
  const policies: [string, object][] = [
    ["victim", { policyTypes: ["Ingress"], ingress: [{ from: speakers, ports }] }],
    ["far", { policyTypes: ["Ingress"], ingress: [{ from: speakers, ports }] }],
    ["closed", { policyTypes: ["Ingress"], ingress: [] }],
    ["jailed", { policyTypes: ["Egress"], egress: [{ ports }] }],
  ];
  for (const [app, rules] of policies) {
    const policy: KubeObject = {
      ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: app, namespace: "default" } },
      spec: { podSelector: { matchLabels: { app } }, ...rules },
    };
    await client.create(NETWORK_POLICIES, policy);
  }
}
