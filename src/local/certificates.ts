import { generateKeyPairSync } from "node:crypto";
import { createAuthority, issue, type KeyPair } from "../kit/x509.ts";

/** The keys of one cluster. Written to its state directory, they make a restarted cluster the same one to its clients. */
export interface ClusterKeys {
  authority: KeyPair;
  server: KeyPair;
  admin: KeyPair;
  frontProxyAuthority: KeyPair;
  frontProxy: KeyPair;
  /** Signs service account tokens. PEM. */
  serviceAccountKey: string;
}

const TEN_YEARS = 3650;
/** A clock that runs a little behind ours must not refuse a certificate made a moment ago. */
const BACKDATED_MS = 3600_000;

export function createClusterKeys(names: readonly string[], now: Date): ClusterKeys {
  const notBefore = new Date(now.getTime() - BACKDATED_MS);
  const validity = { notBefore, days: TEN_YEARS };
  const authority = createAuthority({ commonName: "kubernetes" }, notBefore, TEN_YEARS);
  const frontProxyAuthority = createAuthority({ commonName: "front-proxy-ca" }, notBefore, TEN_YEARS);
  const admin = { commonName: "kubernetes-admin", organizations: ["system:masters"] };
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    authority,
    server: issue(authority, { subject: { commonName: "kube-apiserver" }, usage: "server", names, ...validity }),
    admin: issue(authority, { subject: admin, usage: "client", ...validity }),
    frontProxyAuthority,
    frontProxy: issue(frontProxyAuthority, {
      subject: { commonName: "front-proxy-client" },
      usage: "client",
      ...validity,
    }),
    serviceAccountKey: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  };
}
