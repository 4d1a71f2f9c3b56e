import type { Machine } from "../../src/local/runtime/netns/machine.ts";

/** Of this architecture: the numbers of the system calls `bpf` and `prctl`. */
const CALLS = process.arch === "arm64" ? { bpf: 280, prctl: 167 } : { bpf: 321, prctl: 157 };
const PROG_LOAD = 5;
const EACCES = 13;
const BIN = "/opt/vendor/bin";
const STAGE = "/run/refusing";

/**
 * Stands before the agent on a node whose system forbids it to load programs, as a hardened one does: the kernel itself answers `bpf` with
 * "permission denied", by a filter that the process and all it starts can no longer take off. Everything else is allowed.
 */
const WRAPPER = `#!/usr/bin/perl
if ($ARGV[0] eq "node") {
  my $filter = pack("(S C C L)6",
    0x20, 0, 0, 0,
    0x15, 0, 3, ${CALLS.bpf},
    0x20, 0, 0, 16,
    0x15, 0, 1, ${PROG_LOAD},
    0x06, 0, 0, 0x00050000 | ${EACCES},
    0x06, 0, 0, 0x7fff0000);
  my $program = pack("S x6 P", 6, $filter);
  syscall(${CALLS.prctl}, 22, 2, $program) == 0 or die "no filter: $!";
}
exec("${BIN}/node", "${BIN}/real/vendor", @ARGV);
`;

/** From its next start on the node's agent cannot load programs. */
export async function refusePrograms(machine: Machine): Promise<void> {
  const script = [
    `mkdir -p ${STAGE}/real`,
    `cp -a ${BIN}/. ${STAGE}/`,
    `sed 's,"../dist,"../../dist,' ${BIN}/vendor > ${STAGE}/real/vendor`,
    `cat > ${STAGE}/vendor <<'END'\n${WRAPPER}END`,
    `chmod 755 ${STAGE}/vendor ${STAGE}/real/vendor`,
    `mount --bind ${STAGE} ${BIN}`,
  ];
  await must(machine, script.join("\n"));
}

/** From its next start on it can again. */
export async function allowPrograms(machine: Machine): Promise<void> {
  await must(machine, `umount ${BIN}`);
}

async function must(machine: Machine, script: string): Promise<void> {
  const { code, out } = await machine.run(["sh", "-ec", script]);
  if (code !== 0) throw new Error(`on ${machine.spec.name}: ${out}`);
}
