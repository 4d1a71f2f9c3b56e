import { defineErrors } from "../kit/errors.ts";

const checkAddress = () => "check --manifest-url, or omit it to use the copies in this tool";

/** What can go wrong with the files of a release, and with tools of other people. */
export const errors = defineErrors({
  MANIFEST_URL_UNUSABLE: {
    args: ["address"],
    say: (address: string) => `"${address}" is not an http, https or file address that manifests can be read from`,
    fix: () =>
      "give --manifest-url an address such as https://example.com/v3.31.3, without /manifests and the file's name",
    exitCode: 64,
  },
  MANIFEST_NOT_PINNED: {
    args: ["address"],
    say: (address: string) => `${address} is not trusted: manifests need https and a pinned digest`,
    fix: () =>
      "give --manifest-sha256 DIGEST for each file with an https address, or --insecure to take what it serves",
    exitCode: 64,
  },
  MANIFEST_OTHER_DIGEST: {
    args: ["name", "digest"],
    say: (name: string, digest: string) => `${name} has the digest ${digest}, which is not one of those given`,
    fix: () => "compare it with the publisher's, then give it with --manifest-sha256",
  },
  MANIFEST_DIGEST_UNUSABLE: {
    args: ["text"],
    say: (text: string) => `"${text}" is not a SHA-256 digest`,
    fix: () => "give 64 hexadecimal digits, as sha256sum prints them",
    exitCode: 64,
  },
  MANIFEST_NAME_UNUSABLE: {
    args: ["name"],
    say: (name: string) => `"${name}" is not the name of a published file`,
    exitCode: 64,
  },
  MANIFEST_NOT_FOUND: {
    args: ["name", "where"],
    say: (name: string, where: string) => `${name} is not at ${where}`,
    fix: checkAddress,
  },
  MANIFEST_NOT_SERVED: {
    args: ["where", "answer"],
    say: (where: string, answer: string) => `${where} could not be read: ${answer}`,
    fix: checkAddress,
    exitCode: 69,
  },
  MANIFEST_TOO_BIG: {
    args: ["where", "limit"],
    say: (where: string, limit: string) => `${where} is bigger than ${limit}, the limit of a manifest`,
    fix: checkAddress,
  },
  MANIFEST_NOT_TEXT: {
    args: ["where"],
    say: (where: string) => `${where} is not a text of UTF-8`,
    fix: checkAddress,
  },
  MANIFEST_MISSING_FROM_PACKAGE: {
    args: ["name"],
    say: (name: string) => `this tool's own copy of ${name} is missing`,
    fix: () => "install vendorctl again, or give --manifest-url",
  },
  TOOL_NOT_INSTALLED: {
    args: ["program"],
    say: (program: string) => `${program} is not on the PATH`,
    fix: (program: string) => `install ${program}, or run the command of the step yourself`,
  },
  TOOL_NOT_STARTED: {
    args: ["program", "reason"],
    say: (program: string, reason: string) => `${program} could not be started: ${reason}`,
  },
  TOOL_TIMED_OUT: {
    args: ["program", "seconds"],
    say: (program: string, seconds: number) => `${program} was stopped: it had not finished after ${seconds} seconds`,
    fix: () => "find what it waits for, then vendorctl resume",
    exitCode: 5,
  },
});
