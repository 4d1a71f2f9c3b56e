import { createPrivateKey, createPublicKey, type KeyObject, randomUUID, sign, verify } from "node:crypto";

export interface ServiceAccountClaims {
  namespace: string;
  name: string;
  uid: string;
  audiences: readonly string[];
  /** Seconds since 1970. */
  expires: number;
  boundTo?: { kind: string; apiVersion: string; name: string; uid: string };
}

/** Signs and reads the tokens of service accounts: JSON Web Tokens on a P-256 key. */
export class ServiceAccountTokens {
  readonly issuer: string;
  readonly #private: KeyObject;
  readonly #public: KeyObject;

  constructor(keyPem: string, issuer: string) {
    this.issuer = issuer;
    this.#private = createPrivateKey(keyPem);
    this.#public = createPublicKey(this.#private);
  }

  issue(claims: ServiceAccountClaims, now: Date): string {
    const issued = Math.floor(now.getTime() / 1000);
    const payload = {
      aud: claims.audiences,
      exp: claims.expires,
      iat: issued,
      iss: this.issuer,
      jti: randomUUID(),
      "kubernetes.io": {
        namespace: claims.namespace,
        serviceaccount: { name: claims.name, uid: claims.uid },
        ...(claims.boundTo && { [claims.boundTo.kind.toLowerCase()]: pickNameAndUid(claims.boundTo) }),
      },
      nbf: issued,
      sub: `system:serviceaccount:${claims.namespace}:${claims.name}`,
    };
    const text = `${encode({ alg: "ES256", typ: "JWT" })}.${encode(payload)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.#private, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  }

  /** The claims of a token that is ours and still valid, else undefined: any other token is not authenticated. */
  read(token: string, now: Date): ServiceAccountClaims | undefined {
    const [head, body, signature] = token.split(".");
    if (!head || !body || !signature) return undefined;
    const key = { key: this.#public, dsaEncoding: "ieee-p1363" } as const;
    if (!verify("sha256", Buffer.from(`${head}.${body}`), key, Buffer.from(signature, "base64url"))) return undefined;
    const payload = JSON.parse(Buffer.from(body, "base64url").toString()) as TokenPayload;
    const seconds = now.getTime() / 1000;
    if (payload.iss !== this.issuer || payload.exp <= seconds || payload.nbf > seconds + 60) return undefined;
    const { namespace, serviceaccount } = payload["kubernetes.io"];
    return { namespace, ...serviceaccount, audiences: payload.aud, expires: payload.exp };
  }
}

interface TokenPayload {
  iss: string;
  exp: number;
  nbf: number;
  aud: string[];
  "kubernetes.io": { namespace: string; serviceaccount: { name: string; uid: string } };
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function pickNameAndUid({ name, uid }: { name: string; uid: string }): { name: string; uid: string } {
  return { name, uid };
}
