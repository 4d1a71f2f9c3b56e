import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  INSTALLED_VERSION_UNREADABLE: {
    means: "--installed of vendorctl cluster up takes a version, and the text is not one.",
    example: ["latest"],
    say: (text: string) => `"${text}" is not a version such as v3.27`,
    exitCode: 64,
  },
  INSTALLED_VERSION_TOO_OLD: {
    means: "An embedded cluster was to have an installation of a version that is not known any more.",
    example: ["v3.10", "v3.15"],
    say: (version: string, oldest: string) => `what ${version} left behind is not known; the oldest known is ${oldest}`,
    fix: (_version: string, oldest: string) => `ask for ${oldest} or later with --installed`,
    exitCode: 64,
  },
  INSTALLED_VERSION_NOT_OLDER: {
    means: "An embedded cluster was to have an old installation, and the version is the present one or newer.",
    example: ["v3.31", "v3.30"],
    say: (version: string, newest: string) => `${version} is not an older version; the newest of those is ${newest}`,
    fix: () => "leave --installed out, and install the present version",
    exitCode: 64,
  },
  INSTALL_METHOD_UNKNOWN: {
    means: "--method of vendorctl cluster up is not a method that old installations had.",
    example: ["snap", "operator, chart, manifest"],
    say: (method: string, known: string) => `"${method}" is not an install method; use one of ${known}`,
    exitCode: 64,
  },
  INSTALL_METHOD_NOT_ON_ETCD: {
    means: "The operator and the chart always use the Kubernetes datastore.",
    example: ["operator"],
    say: (method: string) => `an installation by ${method} never used the etcd datastore`,
    fix: () => "choose --method manifest, or leave --datastore out",
    exitCode: 64,
  },
  INSTALLED_DIFFERENTLY: {
    means: "An embedded cluster that exists was started again with another old installation than it was created with.",
    example: ["v3.28 by operator", "v3.27 by operator"],
    say: (asked: string, there: string) => `the cluster was made with ${there} installed, not with ${asked}`,
    fix: () => "ask for the same again, or give the new cluster a data directory of its own",
  },
});
