import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  INSTALLED_VERSION_UNREADABLE: {
    args: ["text"],
    say: (text: string) => `"${text}" is not a version such as v3.27`,
    exitCode: 64,
  },
  INSTALLED_VERSION_TOO_OLD: {
    args: ["version", "oldest"],
    say: (version: string, oldest: string) => `what ${version} left behind is not known; the oldest known is ${oldest}`,
    fix: (_version: string, oldest: string) => `ask for ${oldest} or later with --installed`,
    exitCode: 64,
  },
  INSTALLED_VERSION_NOT_OLDER: {
    args: ["version", "newest"],
    say: (version: string, newest: string) => `${version} is not an older version; the newest of those is ${newest}`,
    fix: () => "leave --installed out, and install the present version",
    exitCode: 64,
  },
  INSTALL_METHOD_UNKNOWN: {
    args: ["method", "known"],
    say: (method: string, known: string) => `"${method}" is not an install method; use one of ${known}`,
    exitCode: 64,
  },
  INSTALL_METHOD_NOT_ON_ETCD: {
    args: ["method"],
    say: (method: string) => `an installation by ${method} never used the etcd datastore`,
    fix: () => "choose --method manifest, or leave --datastore out",
    exitCode: 64,
  },
  INSTALLED_DIFFERENTLY: {
    args: ["asked", "there"],
    say: (asked: string, there: string) => `the cluster was made with ${there} installed, not with ${asked}`,
    fix: () => "ask for the same again, or give the new cluster a data directory of its own",
  },
});
