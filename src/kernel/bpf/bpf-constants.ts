/** Numbers of the kernel's BPF interface (include/uapi/linux/bpf.h), under the names this module uses. */

export const COMMANDS = {
  mapCreate: 0,
  mapLookup: 1,
  mapUpdate: 2,
  mapDelete: 3,
  mapNextKey: 4,
  programLoad: 5,
  pin: 6,
  openPin: 7,
  testRun: 10,
  nextProgramId: 11,
  nextMapId: 12,
  programById: 13,
  mapById: 14,
  info: 15,
  btfLoad: 18,
  mapFreeze: 22,
  lookupBatch: 24,
  updateBatch: 26,
  deleteBatch: 27,
  linkCreate: 28,
  linkUpdate: 29,
  linkById: 30,
  nextLinkId: 31,
  iterCreate: 33,
} as const;

export const MAP_TYPES = {
  hash: 1,
  array: 2,
  progArray: 3,
  perfEventArray: 4,
  perCpuHash: 5,
  perCpuArray: 6,
  cgroupArray: 8,
  lruHash: 9,
  lruPerCpuHash: 10,
  lpmTrie: 11,
  arrayOfMaps: 12,
  hashOfMaps: 13,
  devMap: 14,
  sockHash: 18,
  skStorage: 24,
  ringBuffer: 27,
} as const;
export type MapType = keyof typeof MAP_TYPES;

export const MAP_FLAGS = { noPrealloc: 1, readOnlyProgram: 0x80, mmapable: 0x400 } as const;

export const PROGRAM_TYPES = {
  socketFilter: 1,
  schedCls: 3,
  xdp: 6,
  cgroupSkb: 8,
  cgroupSock: 9,
  sockOps: 13,
  cgroupSockAddr: 18,
  tracing: 26,
} as const;
export type ProgramType = keyof typeof PROGRAM_TYPES;

export const ATTACH_TYPES = {
  cgroupIngress: 0,
  cgroupEgress: 1,
  cgroupSockCreate: 2,
  cgroupSockOps: 3,
  connect4: 10,
  connect6: 11,
  sendmsg4: 14,
  sendmsg6: 15,
  recvmsg4: 19,
  recvmsg6: 20,
  traceIter: 28,
  getpeername4: 29,
  getpeername6: 30,
  getsockname4: 31,
  getsockname6: 32,
  cgroupSockRelease: 34,
  xdp: 37,
  tcxIngress: 46,
  tcxEgress: 47,
} as const;
export type AttachType = keyof typeof ATTACH_TYPES;

export const LINK_TYPES = { cgroup: 3, xdp: 6, tcx: 11 } as const;

/** The name of a number of one of the tables above, or the number itself when we do not use it. */
export function nameOf(table: Record<string, number>, number: number): string {
  return Object.entries(table).find(([, value]) => value === number)?.[0] ?? String(number);
}
