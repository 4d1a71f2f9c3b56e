import { CodedError, defineErrors } from "../kit/errors.ts";

export const errors = defineErrors({
  KERNEL_NOT_PERMITTED: {
    means: "A program of the service lacks a capability for a kernel operation.",
    example: ["bpf map create", "EPERM", ""],
    say: (operation: string, errno: string, detail: string) => sentence("does not permit", operation, errno, detail),
    fix: () =>
      "run as root, with CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN; before kernel 5.11 with CAP_SYS_RESOURCE too",
    exitCode: 77,
  },
  KERNEL_NOT_FOUND: {
    means: "A kernel operation named an object that does not exist.",
    example: ["delete route", "ESRCH", ""],
    say: (operation: string, errno: string, detail: string) =>
      sentence("found nothing to work on in", operation, errno, detail),
  },
  KERNEL_EXISTS: {
    means: "A kernel operation was to create an object that exists already.",
    example: ["create link", "EEXIST", ""],
    say: (operation: string, errno: string, detail: string) =>
      sentence("already has what was to be made by", operation, errno, detail),
  },
  KERNEL_NOT_SUPPORTED: {
    means: "The running kernel does not have an operation that was asked for.",
    example: ["bpf link create", "EOPNOTSUPP", ""],
    say: (operation: string, errno: string, detail: string) => sentence("does not know", operation, errno, detail),
    fix: () => "use a kernel that was built with this feature",
  },
  KERNEL_REFUSED: {
    means: "The kernel refused an operation.",
    example: ["add route", "EINVAL", ""],
    say: (operation: string, errno: string, detail: string) => sentence("refused", operation, errno, detail),
  },
  KERNEL_PROGRAM_REFUSED: {
    means: "The kernel's verifier did not accept a BPF program.",
    example: ["workload", "EACCES", "R1 invalid mem access"],
    say: (program: string, errno: string, log: string) =>
      `the kernel's verifier refused program ${program}: ${errno}${log && `\n${log}`}`,
  },
  KERNEL_BTF_REFUSED: {
    means: "The kernel did not accept the type information of a BPF object.",
    example: ["EINVAL", ""],
    say: (errno: string, log: string) => `the kernel refused the types of an object: ${errno}${log && `\n${log}`}`,
  },
  KERNEL_MAP_LAYOUT: {
    means: "A BPF map that an earlier version pinned has another layout than this version needs.",
    example: ["/sys/fs/bpf/vendor/conntrack", "hash 16/64", "hash 16/80"],
    say: (path: string, have: string, want: string) => `the map pinned at ${path} is ${have}, and ${want} is needed`,
    fix: (path: string) => `carry its entries over to a new map, or remove ${path}`,
  },
  KERNEL_BROKEN_OBJECT: {
    means: "A file is not a BPF object that can be loaded.",
    example: ["it has no ELF header"],
    say: (why: string) => `this is not a BPF object that can be loaded: ${why}`,
  },
  KERNEL_BROKEN_MESSAGE: {
    means: "An answer of the kernel over netlink could not be parsed.",
    example: ["routes"],
    say: (what: string) => `the kernel sent a message about ${what} that cannot be read`,
  },
  KERNEL_NO_FUNCTION: {
    means: "A BPF program calls a kernel function that the running kernel does not offer.",
    example: ["bpf_ct_lookup"],
    say: (name: string) => `the kernel has no function ${name} that programs may call`,
    fix: () => "use a kernel that was built with this function, or load the program without it",
  },
  KERNEL_BAD_ASSEMBLY: {
    means: "A BPF program generated on the node is not valid. This is a bug.",
    example: ["a jump leaves the program"],
    say: (why: string) => `a program could not be assembled: ${why}`,
  },
  KERNEL_BAD_VALUE: {
    means: "A value given to a kernel interface is not of the form that it needs.",
    example: ["an interface name", "a/b"],
    say: (what: string, value: string) => `"${value}" is not ${what}`,
  },
  KERNEL_NFT_REFUSED: {
    means: "The kernel refused a transaction of nftables as a whole. Nothing of it is in effect.",
    example: ["No such file or directory"],
    say: (text: string) => `nftables refused a transaction: ${text}`,
  },
  KERNEL_NO_LIBRARY: {
    means: "A library that is needed for system calls is not on this machine.",
    example: ["libc.so.6", "not found"],
    say: (name: string, why: string) => `the library ${name} could not be loaded: ${why}`,
    fix: (name: string) => `install the package that brings ${name}`,
  },
});

function sentence(verb: string, operation: string, errno: string, detail: string): string {
  return `the kernel ${verb} ${operation}: ${errno}${detail && ` (${detail})`}`;
}

/** What the kernel answered, with the name of its errno: callers decide by that name, people read the sentence. */
export class KernelError extends CodedError {
  readonly errno: string;

  constructor(error: CodedError, errno: string) {
    super(error.code, error.message, { fix: error.fix, exitCode: error.exitCode });
    this.name = "KernelError";
    this.errno = errno;
  }
}

const KINDS = {
  EPERM: "KERNEL_NOT_PERMITTED",
  EACCES: "KERNEL_NOT_PERMITTED",
  ENOENT: "KERNEL_NOT_FOUND",
  ENODEV: "KERNEL_NOT_FOUND",
  ESRCH: "KERNEL_NOT_FOUND",
  ENXIO: "KERNEL_NOT_FOUND",
  EADDRNOTAVAIL: "KERNEL_NOT_FOUND",
  EEXIST: "KERNEL_EXISTS",
  ENOTSUPP: "KERNEL_NOT_SUPPORTED",
  EOPNOTSUPP: "KERNEL_NOT_SUPPORTED",
  ENOSYS: "KERNEL_NOT_SUPPORTED",
  EPROTONOSUPPORT: "KERNEL_NOT_SUPPORTED",
  EAFNOSUPPORT: "KERNEL_NOT_SUPPORTED",
} as const satisfies Record<string, keyof typeof errors>;

export function kernelError(operation: string, errno: string, detail = ""): KernelError {
  const kind = errno in KINDS ? KINDS[errno as keyof typeof KINDS] : "KERNEL_REFUSED";
  return new KernelError(errors[kind](operation, errno, detail), errno);
}

/** The kernel's answer behind an error, when there is one: `errnoOf(error) === "EEXIST"`. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof KernelError ? error.errno : undefined;
}
