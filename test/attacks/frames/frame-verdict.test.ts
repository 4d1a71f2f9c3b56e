import { describe, expect, it } from "vitest";
import { icmp, ipBytes, ports, tcp, udp } from "../../ebpf/frames.ts";
import { ethernet, packet, TYPE, u16 } from "./build-frame.ts";
import { FrameVerdict, OPEN_PORTS, OPEN_TCP, OPEN_UDP, type Place, type Speaker } from "./frame-verdict.ts";

const HOST = "ee:ee:ee:ee:ee:ee";
const [ME, VICTIM, OTHER] = ["10.88.0.2", "10.88.0.3", "10.88.0.4"];
const speaker: Speaker = { name: "attacker", addresses: [ME], egress: "all" };
const place: Place = {
  ...{ name: "victim", addresses: [VICTIM], ingress: OPEN_PORTS, masquerade: [], tunnelsFrom: [] },
  neighbour: { mac: HOST, addresses: ["10.99.0.1"] },
};
const link = { to: "02:00:00:00:00:03", from: HOST };

/** Verdicts of frames heard one after the other. */
function verdicts(...packets: Buffer[]): string[] {
  const verdict = new FrameVerdict();
  return packets.map(
    (bytes) => verdict.ofFrame(ethernet(link, TYPE.v4, bytes), place, speaker)?.split(":")[0] ?? "may be heard",
  );
}

describe("what a test of frames holds against a data plane", () => {
  it("a closed port, another protocol, another's address", () => {
    expect(
      verdicts(
        packet(ME, VICTIM, tcp(4000, OPEN_TCP)),
        packet(ME, VICTIM, tcp(4000, 22)),
        packet(ME, VICTIM, udp(4000, OPEN_TCP)),
        packet(ME, VICTIM, icmp(1, 8)),
        packet(OTHER, VICTIM, tcp(4000, OPEN_TCP)),
      ),
    ).toEqual([
      ...["may be heard", "denied by policy", "denied by policy", "denied by policy"],
      "a source that attacker does not own",
    ]);
  });

  it("a later fragment whose first one was not admitted", () => {
    const later = (id: number) => packet(ME, VICTIM, { protocol: 17, bytes: Buffer.alloc(16) }, { id, offset: 5 });
    const first = packet(ME, VICTIM, udp(4000, OPEN_UDP, "x".repeat(32)), { id: 7, more: true });
    expect(verdicts(later(7), first, later(7), later(8))).toEqual([
      ...["denied by policy", "may be heard", "may be heard", "denied by policy"],
    ]);
  });

  it("a later fragment whose first one was sent to a port that the place does not admit", () => {
    const later = ethernet(
      link,
      TYPE.v4,
      packet(ME, VICTIM, { protocol: 17, bytes: Buffer.alloc(16) }, { id: 7, offset: 5 }),
    );
    const heardAfter = (port: number) => {
      const verdict = new FrameVerdict();
      const first = packet(ME, VICTIM, udp(4000, port, "x".repeat(32)), { id: 7, more: true });
      verdict.sends(ethernet(link, TYPE.v4, first), speaker);
      return verdict.ofFrame(later, place, speaker)?.split(":")[0];
    };
    expect([heardAfter(OPEN_UDP), heardAfter(22)]).toEqual([undefined, "denied by policy"]);
  });

  it("what is behind extension headers, of each of which IPv6 makes a delivery", () => {
    const [node, me] = ["node-1", { ...speaker, addresses: ["fd88::2"] }];
    const heard = (port: number) => {
      const bytes = Buffer.concat([Buffer.from([17, 0, 1, 4, 0, 0, 0, 0]), udp(4000, port).bytes]);
      const delivery = { family: 6, protocol: 60, source: ipBytes("fd88::2"), bytes } as const;
      return new FrameVerdict().ofDelivery(delivery, { ...place, name: node }, me)?.split(":")[0];
    };
    expect([heard(OPEN_UDP), heard(22)]).toEqual([undefined, "denied by policy"]);
  });

  it("a VLAN tag in the tunnel", () => {
    const [here, there] = ["10.99.0.1", "10.99.0.2"];
    const inTunnel = (type: number, rest: Buffer) => {
      const inside = Buffer.concat([Buffer.alloc(8), ethernet(link, type, rest)]);
      const datagram = ports(17, 5000, 4789, Buffer.concat([u16(8 + inside.length, 0), inside]));
      const outer = packet(here, there, datagram);
      const wire = { ...place, name: "wire", ingress: "all" as const, tunnelsFrom: [here] };
      return new FrameVerdict().ofFrame(ethernet(link, TYPE.v4, outer), wire, speaker)?.split(":")[0];
    };
    const bytes = packet(ME, VICTIM, udp(4000, OPEN_UDP, "x"));
    expect(inTunnel(TYPE.v4, bytes)).toBeUndefined();
    expect(inTunnel(0x8100, Buffer.concat([Buffer.from([0, 0, 8, 0]), bytes]))).toBe("a VLAN tag in the tunnel");
  });

  it("an error about a connection that is not the receiver's", () => {
    const about = (port: number) => packet(ME, VICTIM, icmp(1, 3, 4, 0, packet(VICTIM, ME, tcp(OPEN_TCP, port, 16))));
    expect(verdicts(packet(ME, VICTIM, tcp(4000, OPEN_TCP)), about(4000), about(4001))).toEqual([
      ...["may be heard", "may be heard", "denied by policy"],
    ]);
  });

  it("an answer in the tunnel about a fragment that was not sent", () => {
    const [here, there, far] = ["10.99.0.1", "10.99.0.2", "10.88.1.3"];
    const part = (id: number, more: object) => packet(ME, far, udp(4000, OPEN_UDP, "x".repeat(32)), { id, ...more });
    const verdict = new FrameVerdict();
    verdict.sends(ethernet(link, TYPE.v4, part(7, { more: true })), speaker);
    const answered = [7, 8].map((id) => {
      const inner = packet(far, ME, icmp(1, 11, 1, 0, part(id, { offset: 5 })));
      const inside = Buffer.concat([Buffer.alloc(8), ethernet(link, TYPE.v4, inner)]);
      const outer = ports(17, 5000, 4789, Buffer.concat([u16(8 + inside.length, 0), inside]));
      const node = { ...place, name: "node-1", tunnelsFrom: [there] };
      return verdict.ofFrame(ethernet(link, TYPE.v4, packet(there, here, outer)), node, speaker)?.split(":")[0];
    });
    expect(answered).toEqual([undefined, "a source that attacker does not own"]);
  });

  it("a frame that the router did not send, and ARP for others", () => {
    const verdict = new FrameVerdict();
    const bytes = packet(ME, VICTIM, tcp(4000, OPEN_TCP));
    expect(verdict.ofFrame(ethernet({ ...link, from: "02:00:00:00:00:02" }, TYPE.v4, bytes), place, speaker)).toContain(
      "not the neighbour",
    );
    expect(verdict.ofFrame(ethernet(link, 0x88cc, bytes), place, speaker)).toBe("ethertype 0x88cc");
    const arp = Buffer.concat([
      Buffer.alloc(8),
      Buffer.from("eeeeeeeeeeee", "hex"),
      Buffer.from([10, 88, 0, 4]),
      Buffer.alloc(10),
    ]);
    expect(verdict.ofFrame(ethernet(link, TYPE.arp, arp), place, speaker)).toBe(`ARP for ${OTHER} at ${HOST}`);
  });
});
