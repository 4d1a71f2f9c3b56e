import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { checksum, type Payload, quoted, TCP, tcp, udp, v4, v6 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { NODE, OUTSIDE, POD_A, REMOTE } from "./packet-lab.ts";
import { PEER, ServiceLab, servicePort } from "./service-lab.ts";

const missing = whyNoPrograms();
const FAR = servicePort("far", [`${REMOTE.v4}:8080`], { clusterAddress: "10.96.0.11", nodePort: 30081 });
const FAR6 = servicePort("far6", [`[${REMOTE.v6}]:8080`], { family: 6, clusterAddress: "fd96::11", nodePort: 30081 });
/** Of a header with time stamps, as all of them have. */
const TCP_OPTIONS = 12;
const OVERLAY_MTU = 1450;

const to = (source: string, destination: string) => ({ source, destination });

/** Whether a packet fits is a question about its pieces on the wire, and whoever sent it is told. */
describe.skipIf(missing)(`what does not fit the way${missing ? ` (${missing})` : ""}`, () => {
  let lab: ServiceLab;
  beforeAll(async () => {
    lab = await ServiceLab.open();
    await lab.serve([FAR, FAR6]);
    await lab.packets.logFlows();
  });
  beforeEach(() => lab.forget());
  afterAll(() => lab?.close());

  it("offloaded segments that fill the overlay to the last byte pass it, and those a byte longer do not", () => {
    lab.put("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30081)));
    lab.put("overlay", v4(to(REMOTE.v4, OUTSIDE.v4), tcp(8080, 1000, TCP.synAck)), { fromMac: PEER.mac });
    const fits = OVERLAY_MTU - 20 - 20 - TCP_OPTIONS;
    const put = (segment: number) =>
      lab.put(
        "uplink",
        uncut(v4(to(OUTSIDE.v4, NODE.v4), withOptions(tcp(1000, 30081, TCP.ack, bytes(2 * segment))))),
        {
          segment,
        },
      ).line;
    expect(put(fits)).toContain("redirect PASS_ESTABLISHED");
    expect(put(fits + 1)).toContain("redirect REJECT_TOO_BIG | icmp 3/4 192.0.2.1 > 198.51.100.7");
  });

  it("also who speaks to a pod straight is told by us: the stack would not know the connection", () => {
    const large = v4(to(POD_A.v4, REMOTE.v4), tcp(1000, 8080, TCP.syn, bytes(1480)));
    // What may be cut is the stack's to cut.
    expect(lab.put("a", large).line).toContain("next PASS_POLICY");
    lab.forget();
    const seen = lab.put("a", uncut(large));
    expect([seen.line, quoted(seen.packet), seen.packet.readUInt16BE(40), seen.wrong]).toEqual([
      `redirect REJECT_TOO_BIG | icmp 3/4 ${REMOTE.v4} > ${POD_A.v4}`,
      `tcp ${POD_A.v4}:1000 > ${REMOTE.v4}:8080`,
      ...[1500, []],
    ]);
  });

  it("of a datagram's first piece enough is quoted to know whose it is", () => {
    const header = Buffer.from("0000000100000007", "hex");
    const piece = v6(
      { ...to(OUTSIDE.v6, NODE.v6), extensions: [[44, header]] },
      tcp(1000, 30081, TCP.syn, bytes(1400)),
    );
    const { line, packet } = lab.put("uplink", piece, { unsummed: true });
    expect(line).toContain("redirect REJECT_TOO_BIG | icmp 2/0 [2001:db8::1] > [2001:db8:f::7]");
    const quote = packet.subarray(14 + 40 + 8);
    expect([quote.length, quote[6], quote.readUInt16BE(48), quote.readUInt16BE(50)]).toEqual([56, 44, 1000, 30081]);
  });

  it("nothing more than there is of a short datagram", () => {
    const seen = lab.put("a", v6(to(POD_A.v6, "fd96::11"), udp(1000, 99, "")));
    expect([seen.line, seen.packet.length, seen.wrong]).toEqual([
      `redirect REJECT_NO_PORT | icmp 1/4 [fd96::11] > [${POD_A.v6}]`,
      ...[14 + 40 + 8 + 48, []],
    ]);
  });

  it("every drop is in the flow logs, by its reason", async () => {
    const [dropped, logged] = await lab.packets.droppedAndLogged();
    expect(logged).toEqual(dropped);
  });
});

function bytes(count: number): string {
  return "x".repeat(count);
}

function withOptions({ protocol, bytes: segment }: Payload): Payload {
  const longer = Buffer.concat([segment.subarray(0, 20), Buffer.alloc(TCP_OPTIONS, 1), segment.subarray(20)]);
  longer[12] = ((20 + TCP_OPTIONS) / 4) << 4;
  return { protocol, bytes: longer };
}

/** With the sign that it must not be cut. */
function uncut(packet: ReturnType<typeof v4>): ReturnType<typeof v4> {
  const copy = Buffer.from(packet.bytes);
  copy.writeUInt16BE(0x4000, 6);
  copy.writeUInt16BE(0, 10);
  copy.writeUInt16BE(checksum(copy.subarray(0, 20)), 10);
  return { ...packet, bytes: copy };
}
