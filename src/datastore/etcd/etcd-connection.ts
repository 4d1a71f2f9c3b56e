import { type ClientHttp2Session, connect } from "node:http2";
import { CodedError } from "../../kit/errors.ts";
import { GRPC_STATUS, GrpcError } from "../../kit/grpc/grpc-frames.ts";
import { grpcCall, grpcStream } from "../../kit/grpc/grpc-session.ts";
import { decode, encode, type Received, type Sent } from "../../kit/grpc/protobuf.ts";
import { errors } from "../errors.ts";
import { ETCD_CALLS, WATCH, WATCH_REQUEST, WATCH_RESPONSE } from "./etcd-messages.ts";

export interface EtcdOptions {
  /** `http://` or `https://`. One is in use; the next is tried where it leads nowhere. */
  endpoints: readonly string[];
  /** Read for every new connection, so that rotated certificates are used. */
  tls(): EtcdTls;
  user?: EtcdUser;
  signal?: AbortSignal;
}

export interface EtcdUser {
  name: string;
  password: string;
}

/** PEM. */
export interface EtcdTls {
  ca?: string;
  cert?: string;
  key?: string;
}

type Calls = typeof ETCD_CALLS;
type CallName = keyof Calls;
type Request<C extends CallName> = Sent<Calls[C][0]>;
type Answer<C extends CallName> = Received<Calls[C][1]>;
export type WatchAnswer = Received<typeof WATCH_RESPONSE>;
export type WatchCreation = NonNullable<Sent<typeof WATCH_REQUEST>["create_request"]>;

export interface EtcdStream {
  stop(): void;
  /** Why it ended; undefined where `stop` ended it. */
  readonly ended: Promise<Error | undefined>;
}

const CONNECT_MS = 3_000;
const ANSWER_MS = 5_000;
/** A server that does not answer a ping will not send events either. etcd refuses clients that ping more often than every five seconds. */
const PING_MS = 10_000;
const WINDOW_BYTES = 4 * 1024 * 1024;
/** The server ends a watch when it has lost the others: it would say nothing for ever. */
const ONLY_WITH_LEADER = { hasleader: "true" };

/** Nothing was sent, so nothing can have been carried out. */
class NotSent extends Error {}

/** A connection to one member, of which many calls may find out that it leads nowhere. */
interface Link {
  endpoint: string;
  opened: Promise<ClientHttp2Session>;
}

/** etcd's gRPC API over one connection, to one of its members at a time. */
export class EtcdConnection {
  readonly #options: EtcdOptions;
  readonly #watches = new Set<EtcdStream>();
  readonly #pings: NodeJS.Timeout;
  #at = 0;
  #used: Link | undefined;
  /** Of the user, asked for once for all calls; none where etcd asks for no user. */
  #token: Promise<string | undefined> | undefined;
  #closed = false;

  constructor(options: EtcdOptions) {
    this.#options = options;
    this.#pings = setInterval(() => this.#ping(), PING_MS);
    this.#pings.unref();
  }

  /** Asks the members in turn until one answers. */
  async read<C extends CallName>(name: C, request: Request<C>): Promise<Answer<C>> {
    const { endpoints } = this.#options;
    let problem: unknown;
    // With one member too: a connection that broke is noticed only by using it.
    for (let left = Math.max(2, endpoints.length); left > 0; left--) {
      try {
        return await this.#ask(name, request);
      } catch (error) {
        this.#options.signal?.throwIfAborted();
        if (!isNoAnswer(error)) throw refusal(error);
        problem = error;
      }
    }
    throw this.#unreachable(problem);
  }

  /** Sent at most once. */
  async write<C extends CallName>(name: C, request: Request<C>): Promise<Answer<C>> {
    const { endpoints } = this.#options;
    for (let left = endpoints.length; ; left--) {
      const endpoint = this.#endpoint();
      try {
        return await this.#ask(name, request);
      } catch (error) {
        if (!isNoAnswer(error)) throw refusal(error);
        const { message } = error as Error;
        if (!(error instanceof NotSent)) throw errors.ETCD_UNANSWERED(endpoint, message).from(error);
        if (left <= 1) throw this.#unreachable(error);
      }
    }
  }

  /** Answers as they come. Which of a watch's ends means what is the caller's to read. */
  async watch(creation: WatchCreation, onAnswer: (answer: WatchAnswer) => void): Promise<EtcdStream> {
    const link = await this.#link();
    try {
      const session = await link.opened;
      const token = this.#login(session);
      const stream = grpcStream({
        session,
        path: WATCH,
        headers: { ...ONLY_WITH_LEADER, ...tokenHeader(await token) },
        onMessage: (message) => {
          const answer = decode(WATCH_RESPONSE, message);
          // Also how etcd says that the token has expired: the next watch asks for another.
          if (answer.canceled) this.#forget(token);
          onAnswer(answer);
        },
      });
      stream.send(encode(WATCH_REQUEST, { create_request: creation }));
      const watch: EtcdStream = { stop: () => stream.close(), ended: stream.ended };
      this.#watches.add(watch);
      void stream.ended.then((error) => {
        this.#watches.delete(watch);
        if (error instanceof GrpcError && error.status === GRPC_STATUS.unauthenticated) this.#forget(token);
        if (error && isNoAnswer(error)) this.#leave(link);
      });
      return watch;
    } catch (error) {
      this.#leave(link);
      throw isNoAnswer(error) ? this.#unreachable(error) : refusal(error);
    }
  }

  /** Sees to a connection, if one can be had. */
  async connected(): Promise<void> {
    for (let left = this.#options.endpoints.length; ; left--) {
      const link = await this.#link();
      try {
        await link.opened;
        return;
      } catch (error) {
        this.#leave(link);
        if (left <= 1) throw this.#unreachable(error);
      }
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#pings);
    this.#drop();
  }

  async #ask<C extends CallName>(name: C, request: Request<C>): Promise<Answer<C>> {
    const link = await this.#link();
    try {
      const session = await link.opened;
      const login = this.#login(session);
      const token = await login;
      try {
        return await this.#send(session, name, request, tokenHeader(token));
      } catch (error) {
        if (!this.#options.user || !isForToken(error, token)) throw error;
        // What etcd refused for its token it has not done.
        this.#forget(login);
        return await this.#send(session, name, request, tokenHeader(await this.#login(session)));
      }
    } catch (error) {
      if (isNoAnswer(error)) this.#leave(link);
      throw error;
    }
  }

  async #send<C extends CallName>(
    session: ClientHttp2Session,
    name: C,
    request: Request<C>,
    headers: Record<string, string>,
  ): Promise<Answer<C>> {
    if (session.closed || session.destroyed) throw new NotSent("the connection was closed");
    const [sent, received] = ETCD_CALLS[name];
    const message = encode(sent, request);
    const { signal } = this.#options;
    const call = { session, path: name, headers, message, timeoutMs: ANSWER_MS, ...(signal && { signal }) };
    return decode(received, await grpcCall(call)) as unknown as Answer<C>;
  }

  /** One for all calls: etcd takes its time to compare a password. */
  #login(session: ClientHttp2Session): Promise<string | undefined> {
    const { user } = this.#options;
    if (!user) return Promise.resolve(undefined);
    this.#token ??= this.#authenticate(session, user);
    return this.#token;
  }

  /** Unless another call has a newer one already. */
  #forget(login: Promise<string | undefined>): void {
    if (this.#token === login) this.#token = undefined;
  }

  async #authenticate(session: ClientHttp2Session, user: EtcdUser): Promise<string | undefined> {
    try {
      return (await this.#send(session, "/etcdserverpb.Auth/Authenticate", user, {})).token;
    } catch (error) {
      // Authentication is not enabled, or not yet.
      if (error instanceof GrpcError && error.status === GRPC_STATUS.failedPrecondition) return undefined;
      this.#token = undefined;
      if (isNoAnswer(error)) throw new NotSent((error as Error).message);
      throw errors.ETCD_LOGIN(user.name).from(error);
    }
  }

  #endpoint(): string {
    const { endpoints } = this.#options;
    return endpoints[this.#at % endpoints.length] ?? "";
  }

  /** The first of many failures moves on for all. */
  #leave(link: Link): void {
    if (this.#used !== link) return;
    this.#at++;
    this.#drop();
  }

  #drop(): void {
    const left = this.#used;
    this.#used = undefined;
    this.#token = undefined;
    void left?.opened.then(
      (session) => session.destroy(),
      () => undefined,
    );
  }

  /** The connection in use, or a new one where that is broken, or its member says goodbye. */
  async #link(): Promise<Link> {
    const used = this.#used;
    const session = await used?.opened.catch(() => undefined);
    if (this.#closed) throw new NotSent("the datastore is closed");
    if (used && this.#used === used && session && !session.closed && !session.destroyed) return used;
    // Another call may have opened one meanwhile.
    if (this.#used === used || !this.#used) this.#used = opened(this.#endpoint(), this.#options);
    return this.#used;
  }

  #unreachable(error: unknown): Error {
    return errors.ETCD_UNREACHABLE(this.#options.endpoints.join(", "), (error as Error).message).from(error);
  }

  #ping(): void {
    if (this.#watches.size === 0) return;
    void this.#used?.opened.then(
      (session) => {
        const late = setTimeout(() => session.destroy(new Error("no answer to a ping")), ANSWER_MS);
        late.unref();
        if (session.destroyed || !session.ping(() => clearTimeout(late))) clearTimeout(late);
      },
      () => undefined,
    );
  }
}

function opened(endpoint: string, options: EtcdOptions): Link {
  const link = { endpoint, opened: connectTo(endpoint, options) };
  // Whoever asks hears of it.
  link.opened.catch(() => undefined);
  return link;
}

async function connectTo(endpoint: string, { tls }: EtcdOptions): Promise<ClientHttp2Session> {
  const secrets = endpoint.startsWith("https:") ? readTls(tls) : {};
  return await new Promise((resolve, reject) => {
    const settings = { initialWindowSize: WINDOW_BYTES, enablePush: false };
    const session = connect(endpoint, { ...secrets, settings });
    const fail = (error: Error) => {
      clearTimeout(timer);
      session.destroy();
      reject(new NotSent(error.message || String((error as NodeJS.ErrnoException).code)));
    };
    const timer = setTimeout(() => fail(new Error(`no connection in ${CONNECT_MS / 1000} seconds`)), CONNECT_MS);
    // After it was opened too: what was asked on it fails by itself, and the next call opens another.
    session.on("error", fail);
    session.once("close", () => fail(new Error("the connection was closed")));
    session.once("connect", () => {
      clearTimeout(timer);
      session.setLocalWindowSize(WINDOW_BYTES);
      resolve(session);
    });
    session.unref();
  });
}

function readTls(tls: () => EtcdTls): EtcdTls {
  try {
    return tls();
  } catch (error) {
    throw new NotSent((error as Error).message);
  }
}

const NO_ANSWER: readonly number[] = [GRPC_STATUS.unknown, GRPC_STATUS.deadlineExceeded, GRPC_STATUS.unavailable];

const NO_USER = "etcdserver: user name is empty";
const OLD_TOKEN = "etcdserver: revision of auth store is old";

const tokenHeader = (token: string | undefined): Record<string, string> => (token === undefined ? {} : { token });

/** It has expired, or its member was restarted, or users were changed, or authentication was enabled after the login. */
function isForToken(error: unknown, token: string | undefined): boolean {
  if (!(error instanceof GrpcError)) return false;
  const { status, message } = error;
  if (status === GRPC_STATUS.invalidArgument) return message === NO_USER || message === OLD_TOKEN;
  return status === GRPC_STATUS.unauthenticated || (token === undefined && status === GRPC_STATUS.permissionDenied);
}

/** Another member may answer. */
function isNoAnswer(error: unknown): boolean {
  if (error instanceof CodedError) return false;
  return !(error instanceof GrpcError) || NO_ANSWER.includes(error.status);
}

/** etcd's own refusal; one that the caller reads (a compacted revision) stays as it is. */
function refusal(error: unknown): unknown {
  if (!(error instanceof GrpcError)) return error;
  if (error.status === GRPC_STATUS.resourceExhausted) return errors.ETCD_FULL(error.message).from(error);
  if (error.message === NO_USER) return errors.ETCD_LOGIN().from(error);
  return isPastOrFuture(error) ? error : errors.ETCD_REFUSED(error.message).from(error);
}

export function isPastOrFuture(error: unknown): boolean {
  return error instanceof GrpcError && error.status === GRPC_STATUS.outOfRange;
}
