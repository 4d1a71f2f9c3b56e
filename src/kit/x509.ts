import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";

/**
 * Certificates on P-256 keys. Node makes keys and signatures but no certificates, so the little DER they need is written here
 * (docs/adr/0007): a certificate authority, and certificates it issues to servers and clients.
 */
export interface KeyPair {
  /** PEM */
  certificate: string;
  /** PEM, PKCS#8 */
  key: string;
}

export interface Subject {
  commonName: string;
  /** Kubernetes reads these as groups. */
  organizations?: readonly string[];
}

export interface IssueOptions {
  subject: Subject;
  /** `peer` is both: of servers that also are clients of one another. */
  usage: "server" | "client" | "peer";
  /** DNS names and IP addresses a server answers to. */
  names?: readonly string[];
  notBefore: Date;
  days: number;
}

export function createAuthority(subject: Subject, notBefore: Date, days: number): KeyPair {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const spki = keys.publicKey.export({ type: "spki", format: "der" });
  const extensions = [
    extension(OID.basicConstraints, true, sequence(BOOLEAN_TRUE)),
    extension(OID.keyUsage, true, bitString(Buffer.from([0b0000_0110]), 1)),
  ];
  const key = keys.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  return { key, certificate: signed({ subject, issuer: name(subject), spki, notBefore, days, extensions }, key) };
}

export function issue(authority: KeyPair, options: IssueOptions): KeyPair {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const spki = keys.publicKey.export({ type: "spki", format: "der" });
  const extensions = [
    extension(OID.basicConstraints, true, sequence()),
    extension(OID.keyUsage, true, bitString(Buffer.from([0b1010_0000]), 5)),
    extension(OID.extendedKeyUsage, false, sequence(...usagesOf(options.usage))),
  ];
  if (options.names?.length) extensions.push(extension(OID.subjectAltName, false, alternativeNames(options.names)));
  const { subject, notBefore, days } = options;
  const issuer = subjectDer(authority.certificate);
  const certificate = signed({ subject, issuer, spki, notBefore, days, extensions }, authority.key);
  return { certificate, key: keys.privateKey.export({ type: "pkcs8", format: "pem" }) as string };
}

interface ToSign {
  subject: Subject;
  issuer: Buffer;
  spki: Buffer;
  notBefore: Date;
  days: number;
  extensions: readonly Buffer[];
}

function signed(parts: ToSign, issuerKey: string): string {
  const notAfter = new Date(parts.notBefore.getTime() + parts.days * 86_400_000);
  const body = sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(positive(randomBytes(16))),
    ECDSA_SHA256,
    parts.issuer,
    sequence(time(parts.notBefore), time(notAfter)),
    name(parts.subject),
    parts.spki,
    tagged(3, sequence(...parts.extensions)),
  );
  const signature = sign("sha256", body, createPrivateKey(issuerKey));
  return pem(sequence(body, ECDSA_SHA256, bitString(signature, 0)));
}

function pem(der: Buffer): string {
  const lines = der
    .toString("base64")
    .match(/.{1,64}/g)!
    .join("\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

/** True when the key belongs to the certificate. */
export function isPair(pair: KeyPair): boolean {
  const publicKey = createPublicKey(pair.key).export({ type: "spki", format: "der" });
  return new X509Certificate(pair.certificate).publicKey.export({ type: "spki", format: "der" }).equals(publicKey);
}

// --- DER: tag, length, value ---------------------------------------------------------------------------------------------

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), length(body.length), body]);
}

function length(size: number): Buffer {
  if (size < 0x80) return Buffer.from([size]);
  const bytes: number[] = [];
  for (let rest = size; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

const sequence = (...contents: readonly Buffer[]) => der(0x30, ...contents);
const set = (...contents: readonly Buffer[]) => der(0x31, ...contents);
const integer = (bytes: Buffer) => der(0x02, bytes);
const utf8 = (text: string) => der(0x0c, Buffer.from(text, "utf8"));
const tagged = (number: number, content: Buffer) => der(0xa0 | number, content);
const bitString = (bytes: Buffer, unused: number) => der(0x03, Buffer.from([unused]), bytes);
const BOOLEAN_TRUE = der(0x01, Buffer.from([0xff]));

function positive(bytes: Buffer): Buffer {
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return bytes;
}

/** Years up to 2049 are written short, later ones long (RFC 5280). */
function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]/g, "").slice(0, 14);
  const short = date.getUTCFullYear() < 2050;
  return der(short ? 0x17 : 0x18, Buffer.from(`${short ? digits.slice(2) : digits}Z`));
}

function oid(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split(".").map(Number);
  const bytes = [first! * 40 + second!];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(0x06, Buffer.from(bytes));
}

const OID = {
  commonName: oid("2.5.4.3"),
  organization: oid("2.5.4.10"),
  basicConstraints: oid("2.5.29.19"),
  keyUsage: oid("2.5.29.15"),
  extendedKeyUsage: oid("2.5.29.37"),
  subjectAltName: oid("2.5.29.17"),
  serverAuth: oid("1.3.6.1.5.5.7.3.1"),
  clientAuth: oid("1.3.6.1.5.5.7.3.2"),
};
const ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));

function name(subject: Subject): Buffer {
  const organizations = (subject.organizations ?? []).map((text) => set(sequence(OID.organization, utf8(text))));
  return sequence(...organizations, set(sequence(OID.commonName, utf8(subject.commonName))));
}

function extension(id: Buffer, critical: boolean, value: Buffer): Buffer {
  return critical ? sequence(id, BOOLEAN_TRUE, der(0x04, value)) : sequence(id, der(0x04, value));
}

function alternativeNames(names: readonly string[]): Buffer {
  return sequence(...names.map((one) => (isIP(one) ? der(0x87, addressBytes(one)) : der(0x82, Buffer.from(one)))));
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = address.split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [left, right] = [groups(head), tail === undefined ? [] : groups(tail)];
  const words = [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
  return Buffer.from(words.flatMap((word) => [word >> 8, word & 0xff]));
}

/** The subject of a certificate, byte for byte: what the certificates it issues name as their issuer. */
function subjectDer(certificate: string): Buffer {
  const raw = new X509Certificate(certificate).raw;
  const fields = children(children(raw.subarray(...content(raw, 0)))[0]!);
  // version, serial, algorithm, issuer, validity, subject
  return fields[5]!;
}

function content(bytes: Buffer, at: number): [number, number] {
  const first = bytes[at + 1]!;
  if (first < 0x80) return [at + 2, at + 2 + first];
  const count = first & 0x7f;
  const size = bytes.readUIntBE(at + 2, count);
  return [at + 2 + count, at + 2 + count + size];
}

function children(bytes: Buffer): Buffer[] {
  const inner =
    bytes[0] === 0x30 && content(bytes, 0)[1] === bytes.length ? bytes.subarray(content(bytes, 0)[0]) : bytes;
  const found: Buffer[] = [];
  for (let at = 0; at < inner.length; ) {
    const end = content(inner, at)[1];
    found.push(inner.subarray(at, end));
    at = end;
  }
  return found;
}

function usagesOf(usage: IssueOptions["usage"]): Buffer[] {
  if (usage === "peer") return [OID.serverAuth, OID.clientAuth];
  return [usage === "server" ? OID.serverAuth : OID.clientAuth];
}
