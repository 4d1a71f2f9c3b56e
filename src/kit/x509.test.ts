import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createAuthority, isPair, issue } from "./x509.ts";

const now = new Date("2026-01-02T03:04:05Z");

describe("certificates", () => {
  const authority = createAuthority({ commonName: "test-ca" }, now, 3650);

  it("an authority vouches for a server under all its names", () => {
    const names = ["localhost", "api.internal.demo", "127.0.0.1", "fd00::1"];
    const server = issue(authority, {
      subject: { commonName: "api" },
      usage: "server",
      names,
      notBefore: now,
      days: 365,
    });
    const read = new X509Certificate(server.certificate);
    const ca = new X509Certificate(authority.certificate);
    expect(ca.ca).toBe(true);
    expect(ca.verify(ca.publicKey)).toBe(true);
    expect(read.verify(ca.publicKey)).toBe(true);
    expect(read.checkIssued(ca)).toBe(true);
    expect(read.checkHost("api.internal.demo")).toBe("api.internal.demo");
    expect(read.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(read.subjectAltName).toContain("FD00:0:0:0:0:0:0:1");
    expect(new Date(read.validTo).toISOString()).toBe("2027-01-02T03:04:05.000Z");
    expect(isPair(server)).toBe(true);
    expect(isPair({ ...server, key: authority.key })).toBe(false);
  });

  it("a client's groups are the organizations of its subject", () => {
    const subject = { commonName: "admin", organizations: ["system:masters", "team-a"] };
    const client = issue(authority, { subject, usage: "client", notBefore: now, days: 1 });
    expect(new X509Certificate(client.certificate).subject).toBe("O=system:masters\nO=team-a\nCN=admin");
  });

  it("a date after 2049 is written the long way", () => {
    const old = createAuthority({ commonName: "long" }, now, 36500);
    expect(new Date(new X509Certificate(old.certificate).validTo).getUTCFullYear()).toBe(2125);
  });
});
