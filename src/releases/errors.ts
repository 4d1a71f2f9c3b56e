import { defineErrors } from "../kit/errors.ts";

const checkAddress = () => "check --manifest-url, or omit it to use the copies in this tool";

/** What can go wrong with the files of a release, and with tools of other people. */
export const errors = defineErrors({
  MANIFEST_URL_UNUSABLE: {
    means: "--manifest-url is not an address that files can be read from.",
    example: ["ftp://example.com"],
    say: (address: string) => `"${address}" is not an http, https or file address that manifests can be read from`,
    fix: () =>
      "give --manifest-url an address such as https://example.com/v3.31.3, without /manifests and the file's name",
    exitCode: 64,
  },
  MANIFEST_NOT_PINNED: {
    means:
      "Files from elsewhere are used only with https and a digest that you give, because they get every right in the cluster.",
    example: ["http://example.com/v3.31.3"],
    say: (address: string) => `${address} is not trusted: manifests need https and a pinned digest`,
    fix: () =>
      "give --manifest-sha256 DIGEST for each file with an https address, or --insecure to take what it serves",
    exitCode: 64,
  },
  MANIFEST_OTHER_DIGEST: {
    means: "A file from --manifest-url is not the one whose digest you gave. It may have been changed.",
    example: ["vendor-operator.yaml", "sha256:9f86d081884c"],
    say: (name: string, digest: string) => `${name} has the digest ${digest}, which is not one of those given`,
    fix: () => "compare it with the publisher's, then give it with --manifest-sha256",
  },
  MANIFEST_DIGEST_UNUSABLE: {
    means: "--manifest-sha256 is not a digest.",
    example: ["abc"],
    say: (text: string) => `"${text}" is not a SHA-256 digest`,
    fix: () => "give 64 hexadecimal digits, as sha256sum prints them",
    exitCode: 64,
  },
  MANIFEST_NAME_UNUSABLE: {
    means: "A release has no file of this name.",
    example: ["../secrets.yaml"],
    say: (name: string) => `"${name}" is not the name of a published file`,
    exitCode: 64,
  },
  MANIFEST_NOT_FOUND: {
    means: "There is no file of the release at the address given.",
    example: ["vendor-operator.yaml", "https://example.com/v3.31.3"],
    say: (name: string, where: string) => `${name} is not at ${where}`,
    fix: checkAddress,
  },
  MANIFEST_NOT_SERVED: {
    means: "A file of the release could not be downloaded.",
    example: ["https://example.com/v3.31.3/vendor-operator.yaml", "503 Service Unavailable"],
    say: (where: string, answer: string) => `${where} could not be read: ${answer}`,
    fix: checkAddress,
    exitCode: 69,
  },
  MANIFEST_TOO_BIG: {
    means: "A file of the release is bigger than any manifest. The address is most likely wrong.",
    example: ["https://example.com/v3.31.3/vendor-operator.yaml", "16 MiB"],
    say: (where: string, limit: string) => `${where} is bigger than ${limit}, the limit of a manifest`,
    fix: checkAddress,
  },
  MANIFEST_NOT_TEXT: {
    means: "A file of the release is not a text. The address is most likely wrong.",
    example: ["https://example.com/v3.31.3/vendor-operator.yaml"],
    say: (where: string) => `${where} is not a text of UTF-8`,
    fix: checkAddress,
  },
  MANIFEST_MISSING_FROM_PACKAGE: {
    means: "This vendorctl was installed without the manifests of its release.",
    example: ["vendor-operator.yaml"],
    say: (name: string) => `this tool's own copy of ${name} is missing`,
    fix: () => "install vendorctl again, or give --manifest-url",
  },
  TOOL_NOT_INSTALLED: {
    means: "A step runs another program, such as helm, that is not on this machine.",
    example: ["helm"],
    say: (program: string) => `${program} is not on the PATH`,
    fix: (program: string) => `install ${program}, or run the command of the step yourself`,
  },
  TOOL_NOT_STARTED: {
    means: "A step runs another program, and the system did not start it.",
    example: ["helm", "permission denied"],
    say: (program: string, reason: string) => `${program} could not be started: ${reason}`,
  },
  TOOL_TIMED_OUT: {
    means: "A step runs another program, and that did not end in time.",
    example: ["helm", 600],
    say: (program: string, seconds: number) => `${program} was stopped: it had not finished after ${seconds} seconds`,
    fix: () => "find what it waits for, then vendorctl resume",
    exitCode: 5,
  },
});
