import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { programTls } from "./program-tls.ts";

describe("the key pair of a program", () => {
  const dir = mkdtempSync(join(tmpdir(), "program-tls-"));
  afterAll(() => rmSync(dir, { recursive: true }));
  for (const name of ["tls.crt", "tls.key", "ca.crt"]) writeFileSync(join(dir, name), `the ${name}`);
  const whole = { certificate: "the tls.crt", key: "the tls.key", ca: "the ca.crt" };

  it("is in files a real pod has mounted, named one by one or by their directory", () => {
    const files = {
      TLS_CERT_FILE: join(dir, "tls.crt"),
      TLS_KEY_FILE: join(dir, "tls.key"),
      CA_FILE: join(dir, "ca.crt"),
    };
    expect(programTls(files)).toEqual(whole);
    expect(programTls({ VENDOR_TLS_DIR: dir })).toEqual(whole);
  });

  it("is in the environment itself on the embedded cluster, whatever files are named", () => {
    const env = { VENDOR_TLS_CERT: "CERT", VENDOR_TLS_KEY: "KEY", TLS_CERT_FILE: "/nowhere", TLS_KEY_FILE: "/nowhere" };
    expect(programTls(env)).toEqual({ certificate: "CERT", key: "KEY", ca: undefined });
  });

  it("is none where the pod was given none", () => expect(programTls({})).toBeUndefined());

  it("that is named and not there is said with the file's name", () => {
    expect(() => programTls({ VENDOR_TLS_DIR: "/nowhere" })).toThrow(
      "/nowhere/tls.crt cannot be read: there is no such file",
    );
  });
});
