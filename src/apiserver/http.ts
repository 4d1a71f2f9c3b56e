import { type KeyObject, X509Certificate } from "node:crypto";
import { createServer as createPlainServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import { createServer, type Server as SecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { SecureContextOptions, TLSSocket } from "node:tls";
import { StatusError } from "../api/status.ts";
import { defineErrors } from "../kit/errors.ts";
import type { KeyPair } from "../kit/x509.ts";
import type { Credentials } from "./auth/authenticate.ts";
import type { Incoming, Reply, UserInfo } from "./call.ts";
import { sendReply } from "./send-reply.ts";
import { tooLarge } from "./status-errors.ts";

export const errors = defineErrors({
  PORT_IN_USE: {
    means: "A server could not open its port, because another process listens on it.",
    example: ["127.0.0.1", 6443],
    say: (host: string, port: number) => `port ${port} on ${host} is already in use`,
    fix: () => "choose another port, or stop what listens there",
  },
  ADDRESS_NOT_HERE: {
    means: "A server was to listen on an address that this machine does not have.",
    example: ["192.0.2.1"],
    say: (host: string) => `this machine has no address ${host} to listen on`,
    fix: () => "listen on 127.0.0.1, or on an address `ip addr` shows",
  },
  PORT_NOT_PERMITTED: {
    means: "A server was to listen on a port that only root may open.",
    example: [443],
    say: (port: number) => `no permission to listen on port ${port}`,
    fix: () => "choose a port above 1023",
  },
});

export interface ListenOptions {
  host: string;
  /** 0 for any free one. */
  port: number;
  /** A bound socket to listen on in place of them, of another network namespace say. */
  fd?: number;
  /** Without it the server speaks plain HTTP: on loopback only. */
  tls?: TlsTrust;
  limits?: RequestLimits;
  /** Whether a connection is served at all. */
  accepts?(peer: Socket): boolean;
}

/** Who this server is, and whose certificates it takes. Authorities are PEM, one or several in a row. */
export interface TlsTrust {
  server: KeyPair;
  clientAuthority?: string;
  frontProxyAuthority?: string;
  /** Common names a front proxy may have; any where none are listed. */
  frontProxyNames?: readonly string[];
}

export interface Listening {
  host: string;
  port: number;
  url: string;
  close(): Promise<void>;
}

type Authenticate = (credentials: Credentials) => UserInfo;

/** What answers requests: a whole API server's router, or another that speaks the same. */
export interface Handler {
  handle(incoming: Incoming): Promise<Reply>;
}

/** How long a client may take to send the headers, and the whole, of a request. Answers, such as watches, take as long as they take. */
interface RequestLimits {
  headersMs: number;
  requestMs: number;
}

const LIMITS: RequestLimits = { headersMs: 10_000, requestMs: 60_000 };

/** Kubernetes takes bodies up to this size. */
const BODY_LIMIT = 3 * 1024 * 1024;

export async function listen(handler: Handler, authenticate: Authenticate, options: ListenOptions): Promise<Listening> {
  const { tls, limits, accepts } = options;
  const server = tls ? secureListener(handler, authenticate, () => tls) : plainListener(handler, authenticate, limits);
  if (accepts) {
    server.on("connection", (peer: Socket) => {
      if (!accepts(peer)) peer.destroy();
    });
  }
  await started(server, options);
  const { port } = server.address() as AddressInfo;
  const shown = options.host.includes(":") ? `[${options.host}]` : options.host;
  const url = `${options.tls ? "https" : "http"}://${shown}:${port}`;
  return { host: options.host, port, url, close: () => closed(server) };
}

/** Not yet listening, and without TLS. */
export function plainListener(handler: Handler, authenticate: Authenticate, limits: RequestLimits = LIMITS): Server {
  const server = createPlainServer(timeouts(limits), answering(handler, authenticate, undefined));
  return withUpgrades(withoutCrashes(server), handler, authenticate);
}

/** Not yet listening. `trust` is read for each new connection; `setSecureContext(contextOf(trust))` updates TLS when it has changed. */
export function secureListener(handler: Handler, authenticate: Authenticate, trust: () => TlsTrust): SecureServer {
  const options = {
    ...timeouts(LIMITS),
    ...contextOf(trust()),
    requestCert: true,
    // A client without a certificate, or with a wrong one, gets an API error and not a broken handshake.
    rejectUnauthorized: false,
  };
  const server = withoutCrashes(createServer(options, answering(handler, authenticate, trust)));
  return withUpgrades(server, handler, authenticate, trust);
}

/** A request to turn the connection into another is answered like any other, unless the answer agrees. */
function withUpgrades<S extends Server>(
  server: S,
  handler: Handler,
  authenticate: Authenticate,
  trust?: () => TlsTrust,
): S {
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as Socket);
    response.once("finish", () => socket.end());
    socket.on("error", () => socket.destroy());
    void serve(handler, authenticate, trust, request, response, (reply) => {
      response.detachSocket(socket as Socket);
      const headers = Object.entries(reply.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers.join("")}\r\n`);
      if (head.length > 0) socket.unshift(head);
      reply.upgrade?.(socket);
    });
  });
  return server;
}

export function contextOf({ server, clientAuthority, frontProxyAuthority }: TlsTrust): SecureContextOptions {
  const ca = [clientAuthority, frontProxyAuthority].filter((pem) => pem !== undefined);
  return { cert: server.certificate, key: server.key, ca };
}

function timeouts({ headersMs, requestMs }: RequestLimits) {
  return {
    keepAliveTimeout: 120_000,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(5_000, headersMs),
    handshakeTimeout: headersMs,
  };
}

/** A connection that cannot be accepted, for want of descriptors say, must not end the process: others may come. */
function withoutCrashes<S extends Server>(server: S): S {
  server.on("error", () => {});
  return server;
}

function answering(handler: Handler, authenticate: Authenticate, trust: (() => TlsTrust) | undefined) {
  return (request: IncomingMessage, response: ServerResponse) => {
    void serve(handler, authenticate, trust, request, response);
  };
}

function started(server: Server, { host, port, fd }: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") reject(errors.PORT_IN_USE(host, port).from(error));
      else if (error.code === "EADDRNOTAVAIL") reject(errors.ADDRESS_NOT_HERE(host).from(error));
      else if (error.code === "EACCES") reject(errors.PORT_NOT_PERMITTED(port).from(error));
      else reject(error);
    });
    server.listen(fd === undefined ? { port, host } : { fd }, () => resolve());
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function serve(
  handler: Handler,
  authenticate: Authenticate,
  trust: (() => TlsTrust) | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  upgraded?: (reply: Reply) => void,
): Promise<void> {
  const departure = new Departure(response);
  const signal = () => departure.signal;
  try {
    // Repeated headers arrive joined by commas already; `set-cookie` alone does not, and no client sends it here.
    const headers = request.headers as Record<string, string | undefined>;
    const user = authenticate(credentialsOf(request, trust, headers));
    const hasBody = request.method !== "GET" && request.method !== "HEAD" && !upgraded;
    const body = hasBody ? await bodyOf(request) : EMPTY;
    const target = request.url ?? "/";
    const mark = target.indexOf("?");
    const incoming: Incoming = {
      method: request.method ?? "GET",
      path: mark < 0 ? target : target.slice(0, mark),
      search: mark < 0 ? "" : target.slice(mark),
      headers,
      body,
      user,
      get signal() {
        return departure.signal;
      },
    };
    const reply = await handler.handle(incoming);
    if (reply.upgrade && upgraded) upgraded(reply);
    else sendReply(response, reply, signal);
  } catch (error) {
    const status =
      error instanceof StatusError ? error : new StatusError(500, "InternalError", "Internal error occurred");
    sendReply(response, { status: status.code, body: JSON.stringify(status.status) }, signal);
  }
}

/** Aborts when the client has left. Created on demand: most requests are over before, and a signal costs more than a get. */
class Departure {
  readonly #response: ServerResponse;
  #controller: AbortController | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      if (this.#response.destroyed) controller.abort();
      else this.#response.once("close", () => controller.abort());
      this.#controller = controller;
    }
    return this.#controller.signal;
  }
}

const EMPTY = Buffer.alloc(0);

/** A body that is too large is read to its end all the same, or the client would see a broken connection and not our answer. */
function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= BODY_LIMIT) chunks.push(chunk);
      else chunks.length = 0;
    });
    request.on("end", () => {
      if (size > BODY_LIMIT) reject(tooLarge(BODY_LIMIT));
      else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
    request.on("error", reject);
  });
}

interface PeerIdentity {
  certificate?: Credentials["certificate"];
  frontProxy?: boolean;
  stranger?: boolean;
}

/** A connection's certificate does not change, so it is read once. */
const identities = new WeakMap<object, PeerIdentity>();

function credentialsOf(
  request: IncomingMessage,
  trust: (() => TlsTrust) | undefined,
  headers: Record<string, string | undefined>,
): Credentials {
  if (!trust) return { headers };
  const socket = request.socket as TLSSocket;
  let identity = identities.get(socket);
  if (!identity) {
    identity = identify(socket, trust());
    identities.set(socket, identity);
  }
  const { certificate, frontProxy, stranger } = identity;
  return { certificate, frontProxy, stranger, headers };
}

function identify(socket: TLSSocket, trust: TlsTrust): PeerIdentity {
  const raw = socket.getPeerX509Certificate();
  if (!raw) return {};
  if (!socket.authorized) return { stranger: true };
  const fields = raw.subject.split("\n").map((line) => line.split(/=(.*)/s, 2) as [string, string]);
  const commonName = fields.find(([name]) => name === "CN")?.[1] ?? "";
  if (issuedBy(raw, trust.frontProxyAuthority)) {
    const names = trust.frontProxyNames ?? [];
    return names.length === 0 || names.includes(commonName) ? { frontProxy: true } : { stranger: true };
  }
  if (!issuedBy(raw, trust.clientAuthority)) return { stranger: true };
  return {
    certificate: { commonName, organizations: fields.filter(([name]) => name === "O").map(([, value]) => value) },
  };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
const publicKeys = new Map<string, KeyObject>();

function issuedBy(certificate: X509Certificate, authorities: string | undefined): boolean {
  return (authorities?.match(CERTIFICATE) ?? []).some((pem) => certificate.verify(publicKeyOf(pem)));
}

/** Read once: there are as many authorities as servers in this process, and reading one costs as much as a handshake's signature. */
function publicKeyOf(authority: string): KeyObject {
  let key = publicKeys.get(authority);
  if (key === undefined) {
    key = new X509Certificate(authority).publicKey;
    publicKeys.set(authority, key);
  }
  return key;
}
