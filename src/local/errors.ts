import { defineErrors } from "../kit/errors.ts";

export const errors = defineErrors({
  CLUSTER_NAME_INVALID: {
    means: "The name of an embedded cluster has characters that it may not have.",
    example: ["My Cluster"],
    say: (name: string) => `"${name}" cannot be the name of a cluster`,
    fix: () => "use lower-case letters, digits and dashes, starting with a letter, at most 40 of them",
    exitCode: 64,
  },
  CLUSTER_RUNNING: {
    means: "An embedded cluster of this name runs already.",
    example: ["demo"],
    say: (name: string) => `the cluster ${name} is already running`,
    fix: (name: string) => `vendorctl cluster down --name ${name}`,
  },
  CLUSTER_NOT_FOUND: {
    means: "There is no embedded cluster of this name.",
    example: ["demo"],
    say: (name: string) => `there is no cluster ${name}`,
    fix: () => "vendorctl cluster list",
  },
  CLUSTER_DIED: {
    means: "The process of an embedded cluster ended while it started.",
    example: ["demo", "port 6443 is already in use"],
    say: (name: string, last: string) => `the cluster ${name} ended before it was ready: ${last}`,
    fix: (name: string) => `vendorctl cluster logs --name ${name}`,
  },
  CLUSTER_WILL_NOT_STOP: {
    means: "The process of an embedded cluster does not end when it is asked to.",
    example: ["demo", 4711],
    say: (name: string, pid: number) => `the cluster ${name} (process ${pid}) does not stop`,
    fix: (_name: string, pid: number) => `look at process ${pid}, or end it with: kill -9 ${pid}`,
  },
  STATE_NOT_WRITABLE: {
    means: "The directory in which embedded clusters keep their state cannot be written.",
    example: ["/var/lib/vendorctl"],
    say: (path: string) => `no permission to write to ${path}, where clusters keep their state`,
    fix: () => "make it writable for this user, or name another place with VENDORCTL_HOME",
  },
});
