import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errors } from "./errors.ts";

/** PEM texts a program serves and trusts with. */
export interface ProgramTls {
  certificate: string;
  key: string;
  /** The authority of our own programs; undefined where the pod was given none. */
  ca: string | undefined;
}

/**
 * The key pair a pod was given, undefined where it was given none. A real pod has files: `TLS_CERT_FILE`, `TLS_KEY_FILE` and `CA_FILE`
 * name them, or `VENDOR_TLS_DIR` the directory of `tls.crt`, `tls.key` and `ca.crt`. On the embedded cluster there is no file system to
 * mount into: the texts themselves are in `VENDOR_TLS_CERT`, `VENDOR_TLS_KEY` and `VENDOR_CA`, and win.
 */
export function programTls(env: Readonly<Record<string, string | undefined>>): ProgramTls | undefined {
  const dir = env["VENDOR_TLS_DIR"];
  const text = (given: string, file: string, name: string) =>
    env[given] || readIfNamed(env[file] || (dir && join(dir, name)));
  const certificate = text("VENDOR_TLS_CERT", "TLS_CERT_FILE", "tls.crt");
  const key = text("VENDOR_TLS_KEY", "TLS_KEY_FILE", "tls.key");
  if (certificate === undefined || key === undefined) return undefined;
  return { certificate, key, ca: text("VENDOR_CA", "CA_FILE", "ca.crt") };
}

function readIfNamed(file: string | undefined): string | undefined {
  if (!file) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw errors.PROGRAM_TLS_UNREADABLE(file, code === "ENOENT" ? "there is no such file" : String(code)).from(cause);
  }
}
