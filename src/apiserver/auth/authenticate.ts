import { timingSafeEqual } from "node:crypto";
import type { UserInfo } from "../call.ts";
import { unauthorized } from "../status-errors.ts";
import type { Store } from "../storage/store.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";

/** What a connection and its request say about who is there. */
export interface Credentials {
  /** A client certificate that verified against the client authority. */
  certificate?: { commonName: string; organizations: readonly string[] };
  /** A certificate that verified against the authority of front proxies: its word about the user is taken. */
  frontProxy?: boolean;
  /** A certificate that verified against neither. */
  stranger?: boolean;
  headers: Readonly<Record<string, string | undefined>>;
}

export interface AuthenticateOptions {
  tokens: ServiceAccountTokens | undefined;
  /** Bearer tokens that stand for a user. */
  staticTokens: ReadonlyMap<string, UserInfo>;
  store: Store;
  now(): Date;
}

const ANONYMOUS: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };
const AUTHENTICATED = "system:authenticated";

/** A wrong credential is refused; none at all is the anonymous user, who has the rights RBAC gives to system:unauthenticated. */
export function authenticate(credentials: Credentials, options: AuthenticateOptions): UserInfo {
  const proven = userOfConnection(credentials);
  if (proven) return proven;
  const authorization = credentials.headers["authorization"];
  if (authorization === undefined) return ANONYMOUS;
  const token = /^Bearer\s+(\S+)$/i.exec(authorization)?.[1];
  const user = token === undefined ? undefined : userOfToken(token, options);
  if (!user) throw unauthorized();
  return user;
}

/** Who is there by the connection's certificate; undefined when it has none. */
function userOfConnection({ certificate, frontProxy, stranger, headers }: Credentials): UserInfo | undefined {
  if (stranger) throw unauthorized();
  if (frontProxy && headers["x-remote-user"]) return remoteUser(headers);
  return certificate && { name: certificate.commonName, groups: [...certificate.organizations, AUTHENTICATED] };
}

/** For a server behind the front proxy, which knows no tokens itself: one that is presented to it directly proves nothing, and is refused. */
export function userBehindProxy(credentials: Credentials): UserInfo {
  const proven = userOfConnection(credentials);
  if (!proven && credentials.headers["authorization"] !== undefined) throw unauthorized();
  return proven ?? ANONYMOUS;
}

/** Who a token stands for; undefined when it is not one of ours, has ended, or its account is gone. */
export function userOfToken(token: string, options: AuthenticateOptions): UserInfo | undefined {
  for (const [known, user] of options.staticTokens) if (sameText(known, token)) return user;
  const claims = options.tokens?.read(token, options.now());
  if (!claims) return undefined;
  const account = options.store.get("/serviceaccounts", claims.namespace, claims.name);
  if (!account || account.uid !== claims.uid) return undefined;
  const groups = ["system:serviceaccounts", `system:serviceaccounts:${claims.namespace}`, AUTHENTICATED];
  return { name: `system:serviceaccount:${claims.namespace}:${claims.name}`, uid: claims.uid, groups };
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

const EXTRA = "x-remote-extra-";

function remoteUser(headers: Credentials["headers"]): UserInfo {
  const groups = listIn(headers["x-remote-group"]);
  if (!groups.includes(AUTHENTICATED) && headers["x-remote-user"] !== ANONYMOUS.name) groups.push(AUTHENTICATED);
  const extra = Object.entries(headers)
    .filter(([name]) => name.startsWith(EXTRA))
    .map(([name, value]) => [decoded(name.slice(EXTRA.length)), listIn(value)] as const);
  return {
    name: headers["x-remote-user"]!,
    ...(headers["x-remote-uid"] && { uid: headers["x-remote-uid"] }),
    groups,
    ...(extra.length > 0 && { extra: Object.fromEntries(extra) }),
  };
}

/** As it is where its escapes mean nothing. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function listIn(header: string | undefined): string[] {
  return (header ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);
}
