import { createHash, X509Certificate } from "node:crypto";
import { vendorNames } from "../api/names.ts";
import type { KubeObject, OwnerReference } from "../api/object.ts";
import { createAuthority, isPair, issue, type KeyPair } from "../kit/x509.ts";
import { errors } from "./errors.ts";
import type { CertificateRef, CertificateUser, Component } from "./render/inputs.ts";
import { ownLabels } from "./render/metadata.ts";

const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 3650;
const CERTIFICATE_DAYS = 365;
/** Long enough to notice, and to roll every pod in peace. */
const RENEW_BEFORE_MS = 30 * DAY_MS;
/** A clock that is a little behind must not find the certificate to be of its future. */
const BACKDATE_MS = 5 * 60_000;

const { system } = vendorNames.namespaces;
const { node, apiServer, kubeControllers, flowLogs } = vendorNames.workloads;
const inSystem = (service: string) => [
  service,
  `${service}.${system}`,
  `${service}.${system}.svc`,
  `${service}.${system}.svc.cluster.local`,
];

/** Who gets a key pair, as part of which component, and under which names it is reached. */
const USERS: Record<CertificateUser, User> = {
  node: { component: "network", commonName: node, usage: "client", names: [] },
  kubeControllers: {
    component: "network",
    commonName: kubeControllers,
    usage: "server",
    names: inSystem(kubeControllers),
  },
  apiServer: {
    component: "apiserver",
    commonName: apiServer,
    usage: "server",
    names: [...inSystem("vendor-api"), ...inSystem(apiServer)],
  },
  flowLogs: { component: "flow-logs", commonName: flowLogs, usage: "server", names: inSystem(flowLogs) },
};

interface User {
  component: Component;
  commonName: string;
  /** Agents ask; the others are asked. */
  usage: "server" | "client";
  names: string[];
}

const AUTHORITY_SECRET = "vendor-ca";
const secretName = (user: CertificateUser) => `${USERS[user].commonName}-tls`;

/** Keys of the Secrets, as Kubernetes names them; `previous.crt` is trusted until what it signed is replaced. */
const CERTIFICATE = "tls.crt";
const KEY = "tls.key";
const CA = "ca.crt";
const PREVIOUS = "previous.crt";

export interface CertificateContext {
  /** Of the operator's own namespace and the system namespace, as they are. */
  secrets: readonly KubeObject[];
  /** The operator's own: where the authority is kept. */
  namespace: string;
  now: number;
  owner(component: Component): OwnerReference | undefined;
}

export interface Certificates {
  /** The component's Secrets as they should be: what is good stays as it is. */
  secrets: KubeObject[];
  refs: Record<CertificateUser, CertificateRef>;
  /** PEM: whom our programs trust. */
  bundle: string;
  bundleHash: string;
}

/** Whether there is an authority. The network makes it; the other parts wait for that. */
export function hasAuthority(context: Pick<CertificateContext, "secrets" | "namespace">): boolean {
  return findSecret(context.secrets, context.namespace, AUTHORITY_SECRET) !== undefined;
}

/**
 * A component's certificates as they should be, from those there are. Good ones are kept; those of ours that end soon, are broken
 * or are not signed by the authority are issued again. A Secret of another owner is used if it can be, and never overwritten.
 */
export function planCertificates(context: CertificateContext, component: Component): Certificates {
  const authority = planAuthority(context);
  const users = Object.keys(USERS) as CertificateUser[];
  const planned = users.map((user) => {
    const mine = USERS[user].component === component;
    return { user, pair: mine ? planPair(context, user, authority.pair) : othersPair(context, user) };
  });
  const foreign = planned.flatMap(({ pair }) => (pair?.trust ? [pair.trust] : []));
  const bundle = [...new Set([authority.pair.certificate, ...authority.previous, ...foreign])].join("");
  const hash = (pair: Planned | undefined) => (pair ? hashOf(pair.certificate) : "");
  return {
    secrets: [
      ...(component === "network" && authority.secret ? [authority.secret] : []),
      ...planned.flatMap(({ pair }) => (pair?.secret ? [pair.secret] : [])),
    ],
    refs: Object.fromEntries(
      planned.map(({ user, pair }) => [user, { secretName: secretName(user), hash: hash(pair) }]),
    ) as Certificates["refs"],
    bundle,
    bundleHash: hashOf(bundle),
  };
}

function planAuthority(context: CertificateContext): { pair: KeyPair; previous: string[]; secret?: KubeObject } {
  const { namespace, now } = context;
  const found = findSecret(context.secrets, namespace, AUTHORITY_SECRET);
  const secretOf = (pair: KeyPair, previous: string[]) =>
    secretObject(context, "network", { name: AUTHORITY_SECRET, namespace }, pair, previous);
  const make = () => createAuthority({ commonName: "vendor-operator-ca" }, new Date(now - BACKDATE_MS), AUTHORITY_DAYS);
  if (!found) {
    const pair = make();
    return { pair, previous: [], secret: secretOf(pair, []) };
  }
  const data = decoded(found);
  const pair = pairOf(data);
  // Replacing it would cut every program off from every other, so that is for a person to decide.
  if (typeof pair === "string") throw errors.CERTIFICATE_AUTHORITY_BROKEN(`${namespace}/${AUTHORITY_SECRET}`, pair);
  const before = data[PREVIOUS];
  const previous = before !== undefined && validTo(before) > now ? [before] : [];
  if (!isOurs(found)) return { pair, previous };
  if (!endsSoon(pair.certificate, now)) return { pair, previous, secret: secretOf(pair, previous) };
  const renewed = make();
  return { pair: renewed, previous: [pair.certificate], secret: secretOf(renewed, [pair.certificate]) };
}

interface Planned {
  certificate: string;
  /** Absent for a Secret of another owner. */
  secret?: KubeObject;
  /** An authority besides ours that must be trusted for it. */
  trust?: string;
}

function planPair(context: CertificateContext, user: CertificateUser, authority: KeyPair): Planned {
  const name = secretName(user);
  const { component, commonName, usage, names } = USERS[user];
  const found = findSecret(context.secrets, system, name);
  if (found && !isOurs(found)) return foreignPair(found, context.now);
  const kept = found ? pairOf(decoded(found)) : "there is none";
  const good = typeof kept !== "string" && !endsSoon(kept.certificate, context.now) && isIssuedBy(kept, authority);
  const pair = good
    ? kept
    : issue(authority, {
        subject: { commonName },
        usage,
        names,
        notBefore: new Date(context.now - BACKDATE_MS),
        days: CERTIFICATE_DAYS,
      });
  return {
    certificate: pair.certificate,
    secret: secretObject(context, component, { name, namespace: system }, pair, []),
  };
}

/** Of another component only what matters here: what it has, and whom to trust for it. */
function othersPair(context: CertificateContext, user: CertificateUser): Planned | undefined {
  const found = findSecret(context.secrets, system, secretName(user));
  const data = found && decoded(found);
  const pair = data && pairOf(data);
  if (!found || !pair || typeof pair === "string") return undefined;
  return { certificate: pair.certificate, ...(!isOurs(found) && data[CA] ? { trust: withNewline(data[CA]) } : {}) };
}

function foreignPair(secret: KubeObject, now: number): Planned {
  const name = `${secret.metadata.namespace}/${secret.metadata.name}`;
  const data = decoded(secret);
  const pair = pairOf(data);
  if (typeof pair === "string") throw errors.CERTIFICATE_SECRET_UNUSABLE(name, pair);
  if (validTo(pair.certificate) <= now) throw errors.CERTIFICATE_SECRET_UNUSABLE(name, "its certificate has expired");
  const trust = data[CA];
  if (!trust) throw errors.CERTIFICATE_SECRET_UNUSABLE(name, `it has no ${CA}, so clients could not verify it`);
  return { certificate: pair.certificate, trust: withNewline(trust) };
}

function withNewline(pem: string): string {
  return pem.endsWith("\n") ? pem : `${pem}\n`;
}

function secretObject(
  context: CertificateContext,
  component: Component,
  place: { name: string; namespace: string },
  pair: KeyPair,
  previous: readonly string[],
): KubeObject {
  const owner = context.owner(component);
  const data = {
    [CERTIFICATE]: pair.certificate,
    [KEY]: pair.key,
    ...(previous[0] ? { [PREVIOUS]: previous[0] } : {}),
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      ...place,
      labels: ownLabels(component),
      ...(owner ? { ownerReferences: [{ ...owner, blockOwnerDeletion: false }] } : {}),
    },
    type: "kubernetes.io/tls",
    data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
  };
}

function findSecret(secrets: readonly KubeObject[], namespace: string, name: string): KubeObject | undefined {
  return secrets.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
}

function isOurs({ metadata }: KubeObject): boolean {
  return Object.entries(ownLabels("network")).some(([key, value]) => metadata.labels?.[key] === value);
}

function decoded(secret: KubeObject): Record<string, string | undefined> {
  const data = (secret["data"] ?? {}) as Record<string, string>;
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, "base64").toString()]));
}

/** The pair, or one clause that says why it is none. */
function pairOf(data: Record<string, string | undefined>): KeyPair | string {
  const [certificate, key] = [data[CERTIFICATE], data[KEY]];
  if (!certificate || !key) return `it lacks ${certificate ? KEY : CERTIFICATE}`;
  try {
    return isPair({ certificate, key }) ? { certificate, key } : "its key does not belong to its certificate";
  } catch {
    return "its certificate or key cannot be read";
  }
}

function isIssuedBy({ certificate }: KeyPair, authority: KeyPair): boolean {
  const [own, ca] = [new X509Certificate(certificate), new X509Certificate(authority.certificate)];
  return own.checkIssued(ca) && own.verify(ca.publicKey);
}

function validTo(certificate: string): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

function endsSoon(certificate: string, now: number): boolean {
  return validTo(certificate) - now < RENEW_BEFORE_MS;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
