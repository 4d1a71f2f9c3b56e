import { type Payload, tcp, udp } from "../../ebpf/frames.ts";
import { CLOSED, type Ends, entry, FROM, type Malformed } from "./attempt.ts";
import { chained, changed, packet, transport, u16 } from "./build-frame.ts";
import { OPEN_TCP, OPEN_UDP } from "./frame-verdict.ts";

interface Piece {
  from: number;
  to?: number;
  more?: boolean;
  at?: number;
}

/** Fragments with one identifier that no other attempt uses: names are one each. */
let identifiers = 0x4000;

export function fragmentsV4(ends: Ends): Malformed[] {
  return fragmentAttempts(ends, splitV4(ends));
}

export function fragmentsV6(ends: Ends): Malformed[] {
  return fragmentAttempts(ends, splitV6(ends));
}

/** A datagram to an open port in two fragments. The first one has 32 bytes of the text. */
export function halves(ends: Ends, text: string): [first: Buffer, last: Buffer] {
  const whole = transport(ends.source, ends.destination, udp(FROM, OPEN_UDP, text));
  const split = ends.destination.includes(":") ? splitV6(ends) : splitV4(ends);
  const [first, last] = split(whole, [{ from: 0, to: 40, more: true }, { from: 40 }]);
  return [first!, last!];
}

function splitV4(ends: Ends): Split {
  return ({ protocol, bytes }, pieces) => {
    const id = identifiers++ & 0xffff;
    return pieces.map(({ from, to, more = false, at = from }) =>
      packetPart(ends, { protocol, bytes: bytes.subarray(from, to) }, { id, more, offset: at >> 3 }),
    );
  };
}

function packetPart(
  { source, destination }: Ends,
  { protocol, bytes }: Payload,
  more: { id: number; more: boolean; offset: number },
): Buffer {
  // As ESP, so that the checksum of what is only a part is left alone.
  const part = packet(source, destination, { protocol: 50, bytes }, more);
  return changed(part, 9, protocol);
}

function splitV6(ends: Ends): Split {
  return ({ protocol, bytes }, pieces) => {
    const id = identifiers++;
    return pieces.map(({ from, to, more = false, at = from }) => {
      const header = Buffer.concat([Buffer.from([protocol, 0]), u16((at & 0xfff8) | (more ? 1 : 0), 0, id)]);
      return chained(ends.source, ends.destination, 44, Buffer.concat([header, bytes.subarray(from, to)]));
    });
  };
}

type Split = (payload: Payload, pieces: readonly Piece[]) => Buffer[];

function fragmentAttempts(ends: Ends, split: Split): Malformed[] {
  const knock = transport(ends.source, ends.destination, udp(FROM, CLOSED, "x".repeat(64)));
  const open = transport(ends.source, ends.destination, udp(FROM, OPEN_UDP, "x".repeat(64)));
  const syn = transport(ends.source, ends.destination, tcp(FROM, CLOSED, 2, "x".repeat(64)));
  const openSyn = transport(ends.source, ends.destination, tcp(FROM, OPEN_TCP, 2, "x".repeat(64)));
  // The header of a closed port, to be laid over that of an open one.
  const over = (first: Payload, second: Payload) => ({
    protocol: first.protocol,
    bytes: Buffer.concat([first.bytes, second.bytes]),
  });
  const length = open.bytes.length;
  const attempts: [string, Payload, Piece[]][] = [
    ["two fragments", knock, [{ from: 0, to: 40, more: true }, { from: 40 }]],
    ["in reverse", knock, [{ from: 40 }, { from: 0, to: 40, more: true }]],
    ["without a first one", knock, [{ from: 8, to: 40, more: true }, { from: 40 }]],
    ["only a last one", knock, [{ from: 40 }]],
    ["only a first one", knock, [{ from: 0, to: 40, more: true }]],
    ["tiny first one", syn, [{ from: 0, to: 8, more: true }, { from: 8 }]],
    ["flags in the second one", syn, [{ from: 0, to: 16, more: true }, { from: 16 }]],
    [
      "ports split",
      knock,
      [
        { from: 0, to: 2, more: true },
        { from: 2, at: 8 },
      ],
    ],
    ["empty first one", knock, [{ from: 0, to: 0, more: true }, { from: 0 }]],
    [
      "of no multiple of eight",
      knock,
      [
        { from: 0, to: 13, more: true },
        { from: 13, at: 16 },
      ],
    ],
    ["overlap by eight", knock, [{ from: 0, to: 40, more: true }, { from: 32 }]],
    [
      "closed header over an open one",
      over(open, knock),
      [
        { from: 0, to: 40, more: true },
        { from: length, to: length + 40, at: 0, more: true },
        { from: 40, to: length },
      ],
    ],
    [
      "closed header over an open one, TCP",
      over(openSyn, syn),
      [
        { from: 0, to: 40, more: true },
        { from: openSyn.bytes.length, to: openSyn.bytes.length + 40, at: 0, more: true },
        { from: 40, to: openSyn.bytes.length },
      ],
    ],
    [
      "open header over a closed one",
      over(knock, open),
      [
        { from: 0, to: 40, more: true },
        { from: length, to: length + 40, at: 0, more: true },
        { from: 40, to: length },
      ],
    ],
    [
      "second one laid over the first one's ports",
      over(open, knock),
      [
        { from: 0, to: 40, more: true },
        { from: length, at: 0 },
      ],
    ],
    ["inside each other", knock, [{ from: 0, to: 64, more: true }, { from: 24, to: 32, more: true }, { from: 64 }]],
    ["the same twice", knock, [{ from: 0, to: 40, more: true }, { from: 0, to: 40, more: true }, { from: 40 }]],
    [
      "past the largest packet",
      knock,
      [
        { from: 0, to: 40, more: true },
        { from: 40, at: 0xfff8 },
      ],
    ],
    ["two last ones", knock, [{ from: 0, to: 40, more: true }, { from: 40 }, { from: 40, at: 80 }]],
  ];
  return [
    ...attempts.map(([name, payload, pieces]) => entry(ends, `fragments: ${name}`, ...split(payload, pieces))),
    // Behind a first fragment of an open port others' would pass, if they were told apart by less than all of their key.
    entry(
      ends,
      "fragments: of two protocols",
      ...split(open, [{ from: 0, to: 40, more: true }]),
      ...split({ ...syn, protocol: 6 }, [{ from: 8 }]),
    ),
  ];
}
