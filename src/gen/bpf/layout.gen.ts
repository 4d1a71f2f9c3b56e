// Generated from bpf/lib/types.h and bpf/lib/config.h. Do not edit: change those and run `npm run generate`.
// Integers of eight bytes are bigint, addresses and MACs are bytes as they are in memory, everything else is a number.

export interface FiveTuple {
  src: Uint8Array;
  dst: Uint8Array;
  sport: number;
  dport: number;
  protocol: number;
}

export const fiveTupleLayout = {
  size: 40,
  at: { src: 0, dst: 16, sport: 32, dport: 34, protocol: 36 },
  read(bytes: Buffer): FiveTuple {
    return {
      src: bytes.subarray(0, 16),
      dst: bytes.subarray(16, 32),
      sport: bytes.readUInt16LE(32),
      dport: bytes.readUInt16LE(34),
      protocol: bytes.readUInt8(36),
    };
  },
  write(value: FiveTuple): Buffer {
    const bytes = Buffer.alloc(40);
    bytes.set(value.src, 0);
    bytes.set(value.dst, 16);
    bytes.writeUInt16LE(value.sport, 32);
    bytes.writeUInt16LE(value.dport, 34);
    bytes.writeUInt8(value.protocol, 36);
    return bytes;
  },
} as const;

export interface ConntrackEntry {
  lastSeen: bigint;
  packets: bigint;
  bytes: bigint;
  approvedIn: number;
  approvedOut: number;
  out: number;
  state: number;
  path: number;
  flags: number;
  denied: number;
  to: FiveTuple;
  service: number;
  mac: Uint8Array;
  told: number;
  countedArriving: number;
  toldPackets: bigint;
  toldBytes: bigint;
  traceIn: bigint;
  traceOut: bigint;
}

export const conntrackEntryLayout = {
  size: 128,
  at: { lastSeen: 0, packets: 8, bytes: 16, approvedIn: 24, approvedOut: 28, out: 32, state: 36, path: 37, flags: 38, denied: 39, to: 40, service: 80, mac: 84, told: 90, countedArriving: 91, toldPackets: 96, toldBytes: 104, traceIn: 112, traceOut: 120 },
  read(bytes: Buffer): ConntrackEntry {
    return {
      lastSeen: bytes.readBigUInt64LE(0),
      packets: bytes.readBigUInt64LE(8),
      bytes: bytes.readBigUInt64LE(16),
      approvedIn: bytes.readUInt32LE(24),
      approvedOut: bytes.readUInt32LE(28),
      out: bytes.readUInt32LE(32),
      state: bytes.readUInt8(36),
      path: bytes.readUInt8(37),
      flags: bytes.readUInt8(38),
      denied: bytes.readUInt8(39),
      to: fiveTupleLayout.read(bytes.subarray(40, 80)),
      service: bytes.readUInt32LE(80),
      mac: bytes.subarray(84, 90),
      told: bytes.readUInt8(90),
      countedArriving: bytes.readUInt8(91),
      toldPackets: bytes.readBigUInt64LE(96),
      toldBytes: bytes.readBigUInt64LE(104),
      traceIn: bytes.readBigUInt64LE(112),
      traceOut: bytes.readBigUInt64LE(120),
    };
  },
  write(value: ConntrackEntry): Buffer {
    const bytes = Buffer.alloc(128);
    bytes.writeBigUInt64LE(value.lastSeen, 0);
    bytes.writeBigUInt64LE(value.packets, 8);
    bytes.writeBigUInt64LE(value.bytes, 16);
    bytes.writeUInt32LE(value.approvedIn, 24);
    bytes.writeUInt32LE(value.approvedOut, 28);
    bytes.writeUInt32LE(value.out, 32);
    bytes.writeUInt8(value.state, 36);
    bytes.writeUInt8(value.path, 37);
    bytes.writeUInt8(value.flags, 38);
    bytes.writeUInt8(value.denied, 39);
    bytes.set(fiveTupleLayout.write(value.to), 40);
    bytes.writeUInt32LE(value.service, 80);
    bytes.set(value.mac, 84);
    bytes.writeUInt8(value.told, 90);
    bytes.writeUInt8(value.countedArriving, 91);
    bytes.writeBigUInt64LE(value.toldPackets, 96);
    bytes.writeBigUInt64LE(value.toldBytes, 104);
    bytes.writeBigUInt64LE(value.traceIn, 112);
    bytes.writeBigUInt64LE(value.traceOut, 120);
    return bytes;
  },
} as const;

export interface WorkloadShare {
  entries: number;
  limit: number;
  fragmentSecond: bigint;
  fragments: number;
}

export const workloadShareLayout = {
  size: 24,
  at: { entries: 0, limit: 4, fragmentSecond: 8, fragments: 16 },
  read(bytes: Buffer): WorkloadShare {
    return {
      entries: bytes.readUInt32LE(0),
      limit: bytes.readUInt32LE(4),
      fragmentSecond: bytes.readBigUInt64LE(8),
      fragments: bytes.readUInt32LE(16),
    };
  },
  write(value: WorkloadShare): Buffer {
    const bytes = Buffer.alloc(24);
    bytes.writeUInt32LE(value.entries, 0);
    bytes.writeUInt32LE(value.limit, 4);
    bytes.writeBigUInt64LE(value.fragmentSecond, 8);
    bytes.writeUInt32LE(value.fragments, 16);
    return bytes;
  },
} as const;

export interface Interface {
  kind: number;
  epoch: number;
  policyIn: number;
  policyOut: number;
  podMac: Uint8Array;
  hostMac: Uint8Array;
}

export const interfaceLayout = {
  size: 28,
  at: { kind: 0, epoch: 4, policyIn: 8, policyOut: 12, podMac: 16, hostMac: 22 },
  read(bytes: Buffer): Interface {
    return {
      kind: bytes.readUInt32LE(0),
      epoch: bytes.readUInt32LE(4),
      policyIn: bytes.readUInt32LE(8),
      policyOut: bytes.readUInt32LE(12),
      podMac: bytes.subarray(16, 22),
      hostMac: bytes.subarray(22, 28),
    };
  },
  write(value: Interface): Buffer {
    const bytes = Buffer.alloc(28);
    bytes.writeUInt32LE(value.kind, 0);
    bytes.writeUInt32LE(value.epoch, 4);
    bytes.writeUInt32LE(value.policyIn, 8);
    bytes.writeUInt32LE(value.policyOut, 12);
    bytes.set(value.podMac, 16);
    bytes.set(value.hostMac, 22);
    return bytes;
  },
} as const;

export interface Workload {
  ifindex: number;
}

export const workloadLayout = {
  size: 4,
  at: { ifindex: 0 },
  read(bytes: Buffer): Workload {
    return {
      ifindex: bytes.readUInt32LE(0),
    };
  },
  write(value: Workload): Buffer {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value.ifindex, 0);
    return bytes;
  },
} as const;

export interface RouteKey {
  prefixLength: number;
  address: Uint8Array;
}

export const routeKeyLayout = {
  size: 20,
  at: { prefixLength: 0, address: 4 },
  read(bytes: Buffer): RouteKey {
    return {
      prefixLength: bytes.readUInt32LE(0),
      address: bytes.subarray(4, 20),
    };
  },
  write(value: RouteKey): Buffer {
    const bytes = Buffer.alloc(20);
    bytes.writeUInt32LE(value.prefixLength, 0);
    bytes.set(value.address, 4);
    return bytes;
  },
} as const;

export interface Route {
  kind: number;
  flags: number;
  mac: Uint8Array;
}

export const routeLayout = {
  size: 16,
  at: { kind: 0, flags: 4, mac: 8 },
  read(bytes: Buffer): Route {
    return {
      kind: bytes.readUInt32LE(0),
      flags: bytes.readUInt32LE(4),
      mac: bytes.subarray(8, 14),
    };
  },
  write(value: Route): Buffer {
    const bytes = Buffer.alloc(16);
    bytes.writeUInt32LE(value.kind, 0);
    bytes.writeUInt32LE(value.flags, 4);
    bytes.set(value.mac, 8);
    return bytes;
  },
} as const;

export interface SetKey {
  prefixLength: number;
  setHigh: number;
  setLow: number;
  port: number;
  protocol: number;
  address: Uint8Array;
}

export const setKeyLayout = {
  size: 32,
  at: { prefixLength: 0, setHigh: 4, setLow: 8, port: 12, protocol: 14, address: 16 },
  read(bytes: Buffer): SetKey {
    return {
      prefixLength: bytes.readUInt32LE(0),
      setHigh: bytes.readUInt32LE(4),
      setLow: bytes.readUInt32LE(8),
      port: bytes.readUInt16LE(12),
      protocol: bytes.readUInt8(14),
      address: bytes.subarray(16, 32),
    };
  },
  write(value: SetKey): Buffer {
    const bytes = Buffer.alloc(32);
    bytes.writeUInt32LE(value.prefixLength, 0);
    bytes.writeUInt32LE(value.setHigh, 4);
    bytes.writeUInt32LE(value.setLow, 8);
    bytes.writeUInt16LE(value.port, 12);
    bytes.writeUInt8(value.protocol, 14);
    bytes.set(value.address, 16);
    return bytes;
  },
} as const;

export interface SetMember {
  present: number;
}

export const setMemberLayout = {
  size: 4,
  at: { present: 0 },
  read(bytes: Buffer): SetMember {
    return {
      present: bytes.readUInt32LE(0),
    };
  },
  write(value: SetMember): Buffer {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value.present, 0);
    return bytes;
  },
} as const;

export interface Counter {
  packets: bigint;
  bytes: bigint;
}

export const counterLayout = {
  size: 16,
  at: { packets: 0, bytes: 8 },
  read(bytes: Buffer): Counter {
    return {
      packets: bytes.readBigUInt64LE(0),
      bytes: bytes.readBigUInt64LE(8),
    };
  },
  write(value: Counter): Buffer {
    const bytes = Buffer.alloc(16);
    bytes.writeBigUInt64LE(value.packets, 0);
    bytes.writeBigUInt64LE(value.bytes, 8);
    return bytes;
  },
} as const;

export interface Work {
  packet: FiveTuple;
  reply: FiveTuple;
  to: FiveTuple;
  policyTuple: FiveTuple;
  originalDst: Uint8Array;
  sport: number;
  dport: number;
  originalDport: number;
  ipVersion: number;
  icmpType: number;
  icmpCode: number;
  tcpFlags: number;
  transport: number;
  flags: number;
  length: number;
  frame: number;
  segment: number;
  ifindex: number;
  from: number;
  step: number;
  stage: number;
  verdict: number;
  entry: number;
  epochIn: number;
  epochOut: number;
  out: number;
  outSlot: number;
  path: number;
  replyPath: number;
  rulesHit: number;
  mode: number;
  service: number;
  hook: number;
  passReason: number;
  rejectReason: number;
  mtu: number;
  fragmentId: number;
  mac: Uint8Array;
  replyMac: Uint8Array;
  member: SetKey;
  trace: bigint;
  traceIn: bigint;
  rulesIn: number;
  direction: number;
  directionIn: number;
  interval: number;
  dropped: number;
  left: number;
  rules: bigint[];
  eventsSecond: bigint;
  eventsLeft: bigint;
  counted: bigint;
  told: bigint;
}

export const workLayout = {
  size: 1864,
  at: { packet: 0, reply: 40, to: 80, policyTuple: 120, originalDst: 160, sport: 176, dport: 178, originalDport: 180, ipVersion: 182, icmpType: 183, icmpCode: 184, tcpFlags: 185, transport: 186, flags: 188, length: 192, frame: 196, segment: 200, ifindex: 204, from: 208, step: 212, stage: 216, verdict: 220, entry: 224, epochIn: 228, epochOut: 232, out: 236, outSlot: 240, path: 244, replyPath: 248, rulesHit: 252, mode: 256, service: 260, hook: 264, passReason: 268, rejectReason: 272, mtu: 276, fragmentId: 280, mac: 284, replyMac: 290, member: 296, trace: 328, traceIn: 336, rulesIn: 344, direction: 348, directionIn: 350, interval: 352, dropped: 356, left: 360, rules: 368, eventsSecond: 624, eventsLeft: 632, counted: 640, told: 648 },
  read(bytes: Buffer): Work {
    return {
      packet: fiveTupleLayout.read(bytes.subarray(0, 40)),
      reply: fiveTupleLayout.read(bytes.subarray(40, 80)),
      to: fiveTupleLayout.read(bytes.subarray(80, 120)),
      policyTuple: fiveTupleLayout.read(bytes.subarray(120, 160)),
      originalDst: bytes.subarray(160, 176),
      sport: bytes.readUInt16LE(176),
      dport: bytes.readUInt16LE(178),
      originalDport: bytes.readUInt16LE(180),
      ipVersion: bytes.readUInt8(182),
      icmpType: bytes.readUInt8(183),
      icmpCode: bytes.readUInt8(184),
      tcpFlags: bytes.readUInt8(185),
      transport: bytes.readUInt16LE(186),
      flags: bytes.readUInt32LE(188),
      length: bytes.readUInt32LE(192),
      frame: bytes.readUInt32LE(196),
      segment: bytes.readUInt32LE(200),
      ifindex: bytes.readUInt32LE(204),
      from: bytes.readUInt32LE(208),
      step: bytes.readUInt32LE(212),
      stage: bytes.readUInt32LE(216),
      verdict: bytes.readUInt32LE(220),
      entry: bytes.readUInt32LE(224),
      epochIn: bytes.readUInt32LE(228),
      epochOut: bytes.readUInt32LE(232),
      out: bytes.readUInt32LE(236),
      outSlot: bytes.readUInt32LE(240),
      path: bytes.readUInt32LE(244),
      replyPath: bytes.readUInt32LE(248),
      rulesHit: bytes.readUInt32LE(252),
      mode: bytes.readUInt32LE(256),
      service: bytes.readUInt32LE(260),
      hook: bytes.readUInt32LE(264),
      passReason: bytes.readUInt32LE(268),
      rejectReason: bytes.readUInt32LE(272),
      mtu: bytes.readUInt32LE(276),
      fragmentId: bytes.readUInt32LE(280),
      mac: bytes.subarray(284, 290),
      replyMac: bytes.subarray(290, 296),
      member: setKeyLayout.read(bytes.subarray(296, 328)),
      trace: bytes.readBigUInt64LE(328),
      traceIn: bytes.readBigUInt64LE(336),
      rulesIn: bytes.readUInt32LE(344),
      direction: bytes.readUInt16LE(348),
      directionIn: bytes.readUInt16LE(350),
      interval: bytes.readUInt32LE(352),
      dropped: bytes.readUInt32LE(356),
      left: bytes.readUInt32LE(360),
      rules: Array.from({ length: 32 }, (_, i) => bytes.readBigUInt64LE(368 + i * 8)),
      eventsSecond: bytes.readBigUInt64LE(624),
      eventsLeft: bytes.readBigUInt64LE(632),
      counted: bytes.readBigUInt64LE(640),
      told: bytes.readBigUInt64LE(648),
    };
  },
  write(value: Work): Buffer {
    const bytes = Buffer.alloc(1864);
    bytes.set(fiveTupleLayout.write(value.packet), 0);
    bytes.set(fiveTupleLayout.write(value.reply), 40);
    bytes.set(fiveTupleLayout.write(value.to), 80);
    bytes.set(fiveTupleLayout.write(value.policyTuple), 120);
    bytes.set(value.originalDst, 160);
    bytes.writeUInt16LE(value.sport, 176);
    bytes.writeUInt16LE(value.dport, 178);
    bytes.writeUInt16LE(value.originalDport, 180);
    bytes.writeUInt8(value.ipVersion, 182);
    bytes.writeUInt8(value.icmpType, 183);
    bytes.writeUInt8(value.icmpCode, 184);
    bytes.writeUInt8(value.tcpFlags, 185);
    bytes.writeUInt16LE(value.transport, 186);
    bytes.writeUInt32LE(value.flags, 188);
    bytes.writeUInt32LE(value.length, 192);
    bytes.writeUInt32LE(value.frame, 196);
    bytes.writeUInt32LE(value.segment, 200);
    bytes.writeUInt32LE(value.ifindex, 204);
    bytes.writeUInt32LE(value.from, 208);
    bytes.writeUInt32LE(value.step, 212);
    bytes.writeUInt32LE(value.stage, 216);
    bytes.writeUInt32LE(value.verdict, 220);
    bytes.writeUInt32LE(value.entry, 224);
    bytes.writeUInt32LE(value.epochIn, 228);
    bytes.writeUInt32LE(value.epochOut, 232);
    bytes.writeUInt32LE(value.out, 236);
    bytes.writeUInt32LE(value.outSlot, 240);
    bytes.writeUInt32LE(value.path, 244);
    bytes.writeUInt32LE(value.replyPath, 248);
    bytes.writeUInt32LE(value.rulesHit, 252);
    bytes.writeUInt32LE(value.mode, 256);
    bytes.writeUInt32LE(value.service, 260);
    bytes.writeUInt32LE(value.hook, 264);
    bytes.writeUInt32LE(value.passReason, 268);
    bytes.writeUInt32LE(value.rejectReason, 272);
    bytes.writeUInt32LE(value.mtu, 276);
    bytes.writeUInt32LE(value.fragmentId, 280);
    bytes.set(value.mac, 284);
    bytes.set(value.replyMac, 290);
    bytes.set(setKeyLayout.write(value.member), 296);
    bytes.writeBigUInt64LE(value.trace, 328);
    bytes.writeBigUInt64LE(value.traceIn, 336);
    bytes.writeUInt32LE(value.rulesIn, 344);
    bytes.writeUInt16LE(value.direction, 348);
    bytes.writeUInt16LE(value.directionIn, 350);
    bytes.writeUInt32LE(value.interval, 352);
    bytes.writeUInt32LE(value.dropped, 356);
    bytes.writeUInt32LE(value.left, 360);
    for (const [i, item] of value.rules.entries()) bytes.writeBigUInt64LE(item, 368 + i * 8);
    bytes.writeBigUInt64LE(value.eventsSecond, 624);
    bytes.writeBigUInt64LE(value.eventsLeft, 632);
    bytes.writeBigUInt64LE(value.counted, 640);
    bytes.writeBigUInt64LE(value.told, 648);
    return bytes;
  },
} as const;

export interface Event {
  time: bigint;
  tuple: FiveTuple;
  reason: number;
  ifindex: number;
  hook: number;
  length: number;
  rulesHit: number;
  rules: bigint[];
}

export const eventLayout = {
  size: 328,
  at: { time: 0, tuple: 8, reason: 48, ifindex: 52, hook: 56, length: 60, rulesHit: 64, rules: 72 },
  read(bytes: Buffer): Event {
    return {
      time: bytes.readBigUInt64LE(0),
      tuple: fiveTupleLayout.read(bytes.subarray(8, 48)),
      reason: bytes.readUInt32LE(48),
      ifindex: bytes.readUInt32LE(52),
      hook: bytes.readUInt32LE(56),
      length: bytes.readUInt32LE(60),
      rulesHit: bytes.readUInt32LE(64),
      rules: Array.from({ length: 32 }, (_, i) => bytes.readBigUInt64LE(72 + i * 8)),
    };
  },
  write(value: Event): Buffer {
    const bytes = Buffer.alloc(328);
    bytes.writeBigUInt64LE(value.time, 0);
    bytes.set(fiveTupleLayout.write(value.tuple), 8);
    bytes.writeUInt32LE(value.reason, 48);
    bytes.writeUInt32LE(value.ifindex, 52);
    bytes.writeUInt32LE(value.hook, 56);
    bytes.writeUInt32LE(value.length, 60);
    bytes.writeUInt32LE(value.rulesHit, 64);
    for (const [i, item] of value.rules.entries()) bytes.writeBigUInt64LE(item, 72 + i * 8);
    return bytes;
  },
} as const;

export interface SumKey {
  interval: number;
  service: number;
  src: Uint8Array;
  dst: Uint8Array;
  traceIn: bigint;
  traceOut: bigint;
  dport: number;
  protocol: number;
  reason: number;
  flags: number;
}

export const sumKeyLayout = {
  size: 64,
  at: { interval: 0, service: 4, src: 8, dst: 24, traceIn: 40, traceOut: 48, dport: 56, protocol: 58, reason: 59, flags: 60 },
  read(bytes: Buffer): SumKey {
    return {
      interval: bytes.readUInt32LE(0),
      service: bytes.readUInt32LE(4),
      src: bytes.subarray(8, 24),
      dst: bytes.subarray(24, 40),
      traceIn: bytes.readBigUInt64LE(40),
      traceOut: bytes.readBigUInt64LE(48),
      dport: bytes.readUInt16LE(56),
      protocol: bytes.readUInt8(58),
      reason: bytes.readUInt8(59),
      flags: bytes.readUInt8(60),
    };
  },
  write(value: SumKey): Buffer {
    const bytes = Buffer.alloc(64);
    bytes.writeUInt32LE(value.interval, 0);
    bytes.writeUInt32LE(value.service, 4);
    bytes.set(value.src, 8);
    bytes.set(value.dst, 24);
    bytes.writeBigUInt64LE(value.traceIn, 40);
    bytes.writeBigUInt64LE(value.traceOut, 48);
    bytes.writeUInt16LE(value.dport, 56);
    bytes.writeUInt8(value.protocol, 58);
    bytes.writeUInt8(value.reason, 59);
    bytes.writeUInt8(value.flags, 60);
    return bytes;
  },
} as const;

export interface Sum {
  packets: bigint;
  bytes: bigint;
  replyPackets: bigint;
  replyBytes: bigint;
  lastSeen: bigint;
  started: number;
  ended: number;
  live: number;
  sweep: number;
  merged: number;
}

export const sumLayout = {
  size: 64,
  at: { packets: 0, bytes: 8, replyPackets: 16, replyBytes: 24, lastSeen: 32, started: 40, ended: 44, live: 48, sweep: 52, merged: 56 },
  read(bytes: Buffer): Sum {
    return {
      packets: bytes.readBigUInt64LE(0),
      bytes: bytes.readBigUInt64LE(8),
      replyPackets: bytes.readBigUInt64LE(16),
      replyBytes: bytes.readBigUInt64LE(24),
      lastSeen: bytes.readBigUInt64LE(32),
      started: bytes.readUInt32LE(40),
      ended: bytes.readUInt32LE(44),
      live: bytes.readUInt32LE(48),
      sweep: bytes.readUInt32LE(52),
      merged: bytes.readUInt32LE(56),
    };
  },
  write(value: Sum): Buffer {
    const bytes = Buffer.alloc(64);
    bytes.writeBigUInt64LE(value.packets, 0);
    bytes.writeBigUInt64LE(value.bytes, 8);
    bytes.writeBigUInt64LE(value.replyPackets, 16);
    bytes.writeBigUInt64LE(value.replyBytes, 24);
    bytes.writeBigUInt64LE(value.lastSeen, 32);
    bytes.writeUInt32LE(value.started, 40);
    bytes.writeUInt32LE(value.ended, 44);
    bytes.writeUInt32LE(value.live, 48);
    bytes.writeUInt32LE(value.sweep, 52);
    bytes.writeUInt32LE(value.merged, 56);
    return bytes;
  },
} as const;

export interface Telling {
  key: SumKey;
  zero: Sum;
  told: bigint;
}

export const tellingLayout = {
  size: 136,
  at: { key: 0, zero: 64, told: 128 },
  read(bytes: Buffer): Telling {
    return {
      key: sumKeyLayout.read(bytes.subarray(0, 64)),
      zero: sumLayout.read(bytes.subarray(64, 128)),
      told: bytes.readBigUInt64LE(128),
    };
  },
  write(value: Telling): Buffer {
    const bytes = Buffer.alloc(136);
    bytes.set(sumKeyLayout.write(value.key), 0);
    bytes.set(sumLayout.write(value.zero), 64);
    bytes.writeBigUInt64LE(value.told, 128);
    return bytes;
  },
} as const;

export interface Trace {
  rules: bigint[];
  first: number;
  hits: number;
  direction: number;
}

export const traceLayout = {
  size: 272,
  at: { rules: 0, first: 256, hits: 260, direction: 264 },
  read(bytes: Buffer): Trace {
    return {
      rules: Array.from({ length: 32 }, (_, i) => bytes.readBigUInt64LE(0 + i * 8)),
      first: bytes.readUInt32LE(256),
      hits: bytes.readUInt32LE(260),
      direction: bytes.readUInt32LE(264),
    };
  },
  write(value: Trace): Buffer {
    const bytes = Buffer.alloc(272);
    for (const [i, item] of value.rules.entries()) bytes.writeBigUInt64LE(item, 0 + i * 8);
    bytes.writeUInt32LE(value.first, 256);
    bytes.writeUInt32LE(value.hits, 260);
    bytes.writeUInt32LE(value.direction, 264);
    return bytes;
  },
} as const;

export interface FrontendKey {
  address: Uint8Array;
  port: number;
  protocol: number;
}

export const frontendKeyLayout = {
  size: 20,
  at: { address: 0, port: 16, protocol: 18 },
  read(bytes: Buffer): FrontendKey {
    return {
      address: bytes.subarray(0, 16),
      port: bytes.readUInt16LE(16),
      protocol: bytes.readUInt8(18),
    };
  },
  write(value: FrontendKey): Buffer {
    const bytes = Buffer.alloc(20);
    bytes.set(value.address, 0);
    bytes.writeUInt16LE(value.port, 16);
    bytes.writeUInt8(value.protocol, 18);
    return bytes;
  },
} as const;

export interface Frontend {
  service: number;
  flags: number;
  affinity: number;
  clusterList: number;
  clusterCount: number;
  localList: number;
  localCount: number;
}

export const frontendLayout = {
  size: 28,
  at: { service: 0, flags: 4, affinity: 8, clusterList: 12, clusterCount: 16, localList: 20, localCount: 24 },
  read(bytes: Buffer): Frontend {
    return {
      service: bytes.readUInt32LE(0),
      flags: bytes.readUInt32LE(4),
      affinity: bytes.readUInt32LE(8),
      clusterList: bytes.readUInt32LE(12),
      clusterCount: bytes.readUInt32LE(16),
      localList: bytes.readUInt32LE(20),
      localCount: bytes.readUInt32LE(24),
    };
  },
  write(value: Frontend): Buffer {
    const bytes = Buffer.alloc(28);
    bytes.writeUInt32LE(value.service, 0);
    bytes.writeUInt32LE(value.flags, 4);
    bytes.writeUInt32LE(value.affinity, 8);
    bytes.writeUInt32LE(value.clusterList, 12);
    bytes.writeUInt32LE(value.clusterCount, 16);
    bytes.writeUInt32LE(value.localList, 20);
    bytes.writeUInt32LE(value.localCount, 24);
    return bytes;
  },
} as const;

export interface ClusterAddress {
  ports: number;
}

export const clusterAddressLayout = {
  size: 4,
  at: { ports: 0 },
  read(bytes: Buffer): ClusterAddress {
    return {
      ports: bytes.readUInt32LE(0),
    };
  },
  write(value: ClusterAddress): Buffer {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value.ports, 0);
    return bytes;
  },
} as const;

export interface BackendKey {
  list: number;
  index: number;
}

export const backendKeyLayout = {
  size: 8,
  at: { list: 0, index: 4 },
  read(bytes: Buffer): BackendKey {
    return {
      list: bytes.readUInt32LE(0),
      index: bytes.readUInt32LE(4),
    };
  },
  write(value: BackendKey): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32LE(value.list, 0);
    bytes.writeUInt32LE(value.index, 4);
    return bytes;
  },
} as const;

export interface Backend {
  address: Uint8Array;
  port: number;
  flags: number;
}

export const backendLayout = {
  size: 24,
  at: { address: 0, port: 16, flags: 18 },
  read(bytes: Buffer): Backend {
    return {
      address: bytes.subarray(0, 16),
      port: bytes.readUInt16LE(16),
      flags: bytes.readUInt16LE(18),
    };
  },
  write(value: Backend): Buffer {
    const bytes = Buffer.alloc(24);
    bytes.set(value.address, 0);
    bytes.writeUInt16LE(value.port, 16);
    bytes.writeUInt16LE(value.flags, 18);
    return bytes;
  },
} as const;

export interface AffinityKey {
  client: Uint8Array;
  service: number;
  local: number;
}

export const affinityKeyLayout = {
  size: 24,
  at: { client: 0, service: 16, local: 20 },
  read(bytes: Buffer): AffinityKey {
    return {
      client: bytes.subarray(0, 16),
      service: bytes.readUInt32LE(16),
      local: bytes.readUInt32LE(20),
    };
  },
  write(value: AffinityKey): Buffer {
    const bytes = Buffer.alloc(24);
    bytes.set(value.client, 0);
    bytes.writeUInt32LE(value.service, 16);
    bytes.writeUInt32LE(value.local, 20);
    return bytes;
  },
} as const;

export interface Affinity {
  address: Uint8Array;
  port: number;
  lastUsed: bigint;
}

export const affinityLayout = {
  size: 32,
  at: { address: 0, port: 16, lastUsed: 24 },
  read(bytes: Buffer): Affinity {
    return {
      address: bytes.subarray(0, 16),
      port: bytes.readUInt16LE(16),
      lastUsed: bytes.readBigUInt64LE(24),
    };
  },
  write(value: Affinity): Buffer {
    const bytes = Buffer.alloc(32);
    bytes.set(value.address, 0);
    bytes.writeUInt16LE(value.port, 16);
    bytes.writeBigUInt64LE(value.lastUsed, 24);
    return bytes;
  },
} as const;

export interface SourceRangeKey {
  prefixLength: number;
  service: number;
  address: Uint8Array;
}

export const sourceRangeKeyLayout = {
  size: 24,
  at: { prefixLength: 0, service: 4, address: 8 },
  read(bytes: Buffer): SourceRangeKey {
    return {
      prefixLength: bytes.readUInt32LE(0),
      service: bytes.readUInt32LE(4),
      address: bytes.subarray(8, 24),
    };
  },
  write(value: SourceRangeKey): Buffer {
    const bytes = Buffer.alloc(24);
    bytes.writeUInt32LE(value.prefixLength, 0);
    bytes.writeUInt32LE(value.service, 4);
    bytes.set(value.address, 8);
    return bytes;
  },
} as const;

export interface SourceRange {
  present: number;
}

export const sourceRangeLayout = {
  size: 4,
  at: { present: 0 },
  read(bytes: Buffer): SourceRange {
    return {
      present: bytes.readUInt32LE(0),
    };
  },
  write(value: SourceRange): Buffer {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value.present, 0);
    return bytes;
  },
} as const;

export interface SocketKey {
  cookie: bigint;
  address: Uint8Array;
  port: number;
}

export const socketKeyLayout = {
  size: 32,
  at: { cookie: 0, address: 8, port: 24 },
  read(bytes: Buffer): SocketKey {
    return {
      cookie: bytes.readBigUInt64LE(0),
      address: bytes.subarray(8, 24),
      port: bytes.readUInt16LE(24),
    };
  },
  write(value: SocketKey): Buffer {
    const bytes = Buffer.alloc(32);
    bytes.writeBigUInt64LE(value.cookie, 0);
    bytes.set(value.address, 8);
    bytes.writeUInt16LE(value.port, 24);
    return bytes;
  },
} as const;

export interface SocketPeer {
  address: Uint8Array;
  port: number;
  protocol: number;
  flags: number;
  service: number;
  lastUsed: bigint;
}

export const socketPeerLayout = {
  size: 32,
  at: { address: 0, port: 16, protocol: 18, flags: 19, service: 20, lastUsed: 24 },
  read(bytes: Buffer): SocketPeer {
    return {
      address: bytes.subarray(0, 16),
      port: bytes.readUInt16LE(16),
      protocol: bytes.readUInt8(18),
      flags: bytes.readUInt8(19),
      service: bytes.readUInt32LE(20),
      lastUsed: bytes.readBigUInt64LE(24),
    };
  },
  write(value: SocketPeer): Buffer {
    const bytes = Buffer.alloc(32);
    bytes.set(value.address, 0);
    bytes.writeUInt16LE(value.port, 16);
    bytes.writeUInt8(value.protocol, 18);
    bytes.writeUInt8(value.flags, 19);
    bytes.writeUInt32LE(value.service, 20);
    bytes.writeBigUInt64LE(value.lastUsed, 24);
    return bytes;
  },
} as const;

export interface NfConntrackEntry {
  until: bigint;
  dst: Uint8Array;
  dport: number;
  mark: number;
  reply: number;
  tcpState: number;
}

export const nfConntrackEntryLayout = {
  size: 32,
  at: { until: 0, dst: 8, dport: 24, mark: 26, reply: 28, tcpState: 29 },
  read(bytes: Buffer): NfConntrackEntry {
    return {
      until: bytes.readBigUInt64LE(0),
      dst: bytes.subarray(8, 24),
      dport: bytes.readUInt16LE(24),
      mark: bytes.readUInt16LE(26),
      reply: bytes.readUInt8(28),
      tcpState: bytes.readUInt8(29),
    };
  },
  write(value: NfConntrackEntry): Buffer {
    const bytes = Buffer.alloc(32);
    bytes.writeBigUInt64LE(value.until, 0);
    bytes.set(value.dst, 8);
    bytes.writeUInt16LE(value.dport, 24);
    bytes.writeUInt16LE(value.mark, 26);
    bytes.writeUInt8(value.reply, 28);
    bytes.writeUInt8(value.tcpState, 29);
    return bytes;
  },
} as const;

export const TOLD = {
  TOLD_STARTED: 1,
  TOLD_ENDED: 2,
} as const;

export const SUM_FLAG = {
  SUM_MERGED: 1,
  SUM_INTERVAL: 2,
} as const;

export const TRACE_DIRECTION = {
  TRACE_EGRESS: 1,
  TRACE_INGRESS: 2,
} as const;

export const SOCKET_FLAG = {
  SOCKET_CONNECTED: 1,
} as const;

export const FRONTEND_FLAG = {
  FRONTEND_EXTERNAL: 1,
  FRONTEND_EXTERNAL_LOCAL: 2,
  FRONTEND_INTERNAL_LOCAL: 4,
  FRONTEND_SOURCE_RANGES: 8,
  FRONTEND_ANY: 16,
  FRONTEND_NODE_PORT: 32,
} as const;

export const BACKEND_FLAG = {
  BACKEND_LOCAL: 1,
} as const;

export const ROUTE_FLAG = {
  ROUTE_PEER_EBPF: 1,
  ROUTE_OVERLAY: 2,
} as const;

export const MARK = {
  MARK_MASQUERADE: 512,
  MARK_REJECT: 768,
  MARK_MASK: 3840,
} as const;

export const CONNTRACK_STATE = {
  CT_OPENING: 0,
  CT_ESTABLISHED: 1,
  CT_CLOSING: 2,
} as const;

export const FORWARD_PATH = {
  PATH_STACK: 0,
  PATH_LOCAL: 1,
  PATH_ROUTE: 2,
  PATH_HOST: 4,
  PATH_OVERLAY: 3,
} as const;

export const CONNTRACK_FLAG = {
  CT_REPLY: 1,
  CT_FROM_HOST: 2,
  CT_TO_HOST: 4,
  CT_FIN: 8,
  CT_NAT: 16,
  CT_MASQUERADE: 32,
  CT_DSR: 64,
  CT_NF_CONNTRACK: 128,
} as const;

export const INTERFACE_KIND = {
  INTERFACE_WORKLOAD: 1,
  INTERFACE_HOST: 2,
  INTERFACE_OVERLAY: 3,
} as const;

export const ROUTE_KIND = {
  ROUTE_REMOTE_WORKLOAD: 1,
  ROUTE_REMOTE_HOST: 2,
  ROUTE_LOCAL_HOST: 3,
  ROUTE_POOL: 4,
} as const;

export const NODE_FIELD = {
  NODE_MODE: 0,
  NODE_EVENTS: 1,
  NODE_EPOCH: 2,
  NODE_GENERATION: 3,
  NODE_OVERLAY: 4,
  NODE_OVERLAY_MTU: 5,
  NODE_DSR: 6,
  NODE_MIGRATING: 7,
  NODE_INTERVAL: 8,
  NODE_SWEEP: 9,
  NODE_FIELDS: 10,
} as const;

export const NODE_MODE = {
  MODE_OFF: 0,
  MODE_EBPF: 1,
  MODE_DRAIN: 2,
} as const;

export const HOOK = {
  HOOK_FROM_WORKLOAD: 0,
  HOOK_TO_WORKLOAD: 1,
  HOOK_FROM_HOST: 2,
  HOOK_TO_HOST: 3,
  HOOKS: 4,
} as const;

export const REASON = {
  REASON_NONE: 0,
  PASS_ESTABLISHED: 1,
  PASS_RELATED: 2,
  PASS_POLICY: 3,
  PASS_NO_POLICY: 4,
  PASS_NOT_OURS: 5,
  PASS_ARP: 6,
  PASS_NEIGHBOUR_DISCOVERY: 7,
  PASS_OVERLAY: 8,
  PASS_OTHER_PROTOCOL: 9,
  PASS_FROM_HOST: 10,
  PASS_KERNEL_FLOW: 11,
  PASS_GIVEN: 12,
  PASS_DRAINING: 13,
  PASS_ANSWER: 14,
  PASS_ITSELF: 15,
  FIRST_DROP: 32,
  DROP_INTERFACE_NOT_READY: 32,
  DROP_POLICY_WORKLOAD_EGRESS: 33,
  DROP_POLICY_WORKLOAD_INGRESS: 34,
  DROP_POLICY_HOST: 35,
  DROP_POLICY_MISSING: 36,
  DROP_SPOOFED_SOURCE: 37,
  DROP_SPOOFED_ARP: 38,
  DROP_SPOOFED_NEIGHBOUR: 39,
  DROP_ROUTER_ADVERTISEMENT: 40,
  DROP_VLAN: 41,
  DROP_NOT_IP: 42,
  DROP_TRUNCATED: 43,
  DROP_MALFORMED: 44,
  DROP_EXTENSION_HEADERS: 45,
  DROP_SOURCE_ROUTE: 46,
  DROP_FRAGMENT_WITHOUT_FIRST: 47,
  DROP_NO_LOCAL_BACKEND: 48,
  DROP_SOURCE_RANGE: 49,
  DROP_TUNNEL_SOURCE: 50,
  DROP_FLOWS_FULL: 51,
  DROP_NO_FREE_PORT: 52,
  DROP_NO_ROUTE: 53,
  DROP_NAT_FAILED: 54,
  REJECT_NO_BACKEND: 55,
  REJECT_TOO_BIG: 56,
  REJECT_HOP_LIMIT: 57,
  REJECT_NO_PORT: 59,
  DROP_FLOWS_MOVING: 60,
  DROP_WORKLOAD_LIMIT: 61,
  DROP_FRAGMENT_LIMIT: 62,
  DROP_REVERSE_PATH: 63,
  REJECT_UNKNOWN_FLOW: 58,
  REASONS: 64,
} as const;

export const VERDICT = {
  VERDICT_NONE: 0,
  VERDICT_ALLOW: 1,
  VERDICT_DENY: 2,
} as const;

export const STEP = {
  STEP_FROM_WORKLOAD: 0,
  STEP_TO_WORKLOAD: 1,
  STEP_FROM_HOST: 2,
  STEP_TO_HOST: 3,
  STEP_NEW_FLOW_WORKLOAD: 4,
  STEP_NEW_FLOW_HOST: 5,
  STEP_REJECT: 6,
  STEP_NEW_FLOW_LOCAL: 7,
  STEP_DROPPED: 8,
  STEPS: 9,
} as const;

export const WORK_FLAG = {
  WORK_FROM_HOST: 1,
  WORK_TO_HOST: 2,
  WORK_REPLY: 4,
  WORK_KNOWN: 8,
  WORK_UNTRACKED: 16,
  WORK_LATER_FRAGMENT: 32,
  WORK_OPTIONS: 64,
  WORK_ICMP_ERROR: 128,
  WORK_NAT: 256,
  WORK_MASQUERADE: 512,
  WORK_DSR: 1024,
  WORK_NF_CONNTRACK: 2048,
  WORK_HOST_NAT: 8192,
  WORK_EXTERNAL: 4096,
  WORK_FIRST_FRAGMENT: 16384,
  WORK_COUNTED: 32768,
  WORK_SENT_AGAIN: 65536,
} as const;

/** What is fixed when the programs are loaded, with what it is unless told: times in nanoseconds, switches 0 or 1. */
export const CONFIGURATION = {
  timeout_tcp_opening: 60000000000,
  timeout_tcp_established: 3600000000000,
  timeout_tcp_closing: 66000000000,
  timeout_udp: 120000000000,
  timeout_icmp: 10000000000,
  timeout_other: 600000000000,
  timeout_fragment: 30000000000,
  fragments_per_second: 16384,
  has_redirect_peer: 1,
  has_redirect_neigh: 1,
  has_ct_lookup: 0,
  ct_tuples_offset: 0,
  ct_mark_offset: 0,
  ct_tcp_state_offset: 0,
  vxlan_vni: 4096,
  netns_cookie: 0,
  vxlan_port: 4789,
  reverse_path: 1,
  connects_udp: 1,
};

/** Names the layout of all maps: programs and maps of different ones do not go together. */
export const LAYOUT_DIGEST = "1e2bdb3f3208";
