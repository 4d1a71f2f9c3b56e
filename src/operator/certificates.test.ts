import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { createAuthority, issue } from "../kit/x509.ts";
import { type CertificateContext, planCertificates } from "./certificates.ts";

const DAY = 86_400_000;
const START = Date.parse("2030-01-01T00:00:00Z");

function context(secrets: readonly KubeObject[], now = START): CertificateContext {
  return { secrets, namespace: "vendor-operator", now, owner: () => undefined };
}

const pem = (secret: KubeObject | undefined, key = "tls.crt") =>
  Buffer.from(((secret?.["data"] ?? {}) as Record<string, string>)[key] ?? "", "base64").toString();
const named = (secrets: readonly KubeObject[], name: string) => secrets.find(({ metadata }) => metadata.name === name);

describe("certificates", () => {
  it("are made once and kept, signed by an authority everybody trusts", () => {
    const first = planCertificates(context([]), "network");
    expect(first.secrets.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual([
      "vendor-operator/vendor-ca",
      "vendor-system/vendor-node-tls",
      "vendor-system/vendor-kube-controllers-tls",
    ]);
    const again = planCertificates(context(first.secrets), "network");
    expect(again.secrets).toEqual(first.secrets);
    expect(again.bundleHash).toBe(first.bundleHash);
    const api = planCertificates(context(first.secrets), "apiserver");
    const certificate = new X509Certificate(pem(api.secrets[0]));
    expect(certificate.checkHost("vendor-api.vendor-system.svc")).toBeDefined();
    expect(certificate.verify(new X509Certificate(api.bundle).publicKey)).toBe(true);
    expect(api.refs.node).toEqual(first.refs.node);
  });

  it("are renewed thirty days before they end, and their hash rolls the pods", () => {
    const first = planCertificates(context([]), "network");
    const kept = planCertificates(context(first.secrets, START + 334 * DAY), "network");
    expect(kept.refs.node.hash).toBe(first.refs.node.hash);
    const renewed = planCertificates(context(first.secrets, START + 336 * DAY), "network");
    expect(renewed.refs.node.hash).not.toBe(first.refs.node.hash);
    expect(renewed.bundleHash).toBe(first.bundleHash);
  });

  it("follow a new authority, and the old one is trusted as long as it lives", () => {
    const first = planCertificates(context([]), "network");
    const late = START + 3625 * DAY;
    const renewed = planCertificates(context(first.secrets, late), "network");
    expect(renewed.bundle).toContain(pem(named(first.secrets, "vendor-ca")));
    expect(renewed.bundle.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    const later = planCertificates(context(renewed.secrets, START + 3660 * DAY), "network");
    expect(later.bundle.match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
  });

  it("of ours that are broken are made again; a broken authority is for a person to decide about", () => {
    const first = planCertificates(context([]), "network");
    const node = named(first.secrets, "vendor-node-tls") as KubeObject;
    const broken = { ...node, data: { ...(node["data"] as object), "tls.key": "bm90IGEga2V5" } };
    const others = first.secrets.filter((secret) => secret !== node);
    const repaired = planCertificates(context([...others, broken]), "network");
    expect(pem(named(repaired.secrets, "vendor-node-tls"), "tls.key")).toContain("PRIVATE KEY");
    const ca = named(first.secrets, "vendor-ca") as KubeObject;
    const ruined = { ...ca, data: { "tls.crt": "eA==" } };
    expect(() => planCertificates(context([ruined]), "network")).toThrow(
      /Secret vendor-operator\/vendor-ca cannot be used: it lacks tls.key/,
    );
  });

  it("somebody else brought are used and trusted, and never overwritten", () => {
    const authority = createAuthority({ commonName: "corporate" }, new Date(START), 100);
    const pair = issue(authority, {
      subject: { commonName: "node" },
      usage: "client",
      notBefore: new Date(START),
      days: 90,
    });
    const data = { "tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate };
    const encode = (from: Record<string, string>) =>
      Object.fromEntries(Object.entries(from).map(([key, text]) => [key, Buffer.from(text).toString("base64")]));
    const metadata = { name: "vendor-node-tls", namespace: "vendor-system" };
    const secret = { apiVersion: "v1", kind: "Secret", metadata, data: encode(data) };
    const planned = planCertificates(context([secret]), "network");
    expect(named(planned.secrets, "vendor-node-tls")).toBeUndefined();
    expect(planned.bundle).toContain(authority.certificate);
    const { "ca.crt": _, ...without } = data;
    const unusable = { ...secret, data: encode(without) };
    expect(() => planCertificates(context([unusable]), "network")).toThrow(
      /vendor-system\/vendor-node-tls is not ours and cannot be used/,
    );
  });
});
