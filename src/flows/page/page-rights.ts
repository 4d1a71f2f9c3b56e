import { randomBytes, timingSafeEqual } from "node:crypto";
import { StatusError } from "../../api/status.ts";
import type { Incoming } from "../../apiserver/call.ts";
import { unauthorized } from "../../apiserver/status-errors.ts";

/** With whose rights the page reads the API. */
export interface PageRights {
  /** The reader shows a token with each request. */
  signIn: boolean;
  /** Throws a refusal of any request that is not the page's. */
  admit(incoming: Incoming): void;
  /** For the API server. Throws where the sender proves nothing. */
  headersOf(incoming: Incoming): Record<string, string>;
  /** Sent with the page itself. */
  pageHeaders: Readonly<Record<string, string>>;
}

const BEARER = /^Bearer\s+\S+$/i;

/** In a cluster: the program has no rights of its own, and passes the reader's token on. A request without one gets nothing. */
export function readersRights(): PageRights {
  return {
    signIn: true,
    admit: () => {},
    headersOf: ({ headers: { authorization } }) => {
      if (!authorization || !BEARER.test(authorization)) throw unauthorized();
      return { authorization };
    },
    pageHeaders: {},
  };
}

/** A name that only this machine has: a page of elsewhere that makes its own name point here is refused. */
const OWN_HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/;

/** What browsers say of a request that the page itself makes, and of an address that was typed. */
const OF_THE_PAGE = ["same-origin", "none"];

/**
 * On a user's own machine: the rights of the kubeconfig, for the page that this server gave out and for nothing else in the browser. A
 * page of elsewhere fails three times: by the name it asks for, by what browsers say of its requests, and because it has no cookie.
 */
export function ownRights(): PageRights {
  const secret = randomBytes(32).toString("base64url");
  // A browser sends a cookie to every port of a name, so each server has its own.
  const cookie = `vendor-flow-ui-${randomBytes(4).toString("hex")}`;
  return {
    signIn: false,
    admit: ({ method, headers }) => {
      const host = headers["host"] ?? "";
      const own = `http://${host}`;
      if (!OWN_HOST.test(host)) throw notThePage("this server is not called that");
      const isRead = method === "GET" || method === "HEAD";
      // Browsers name the origin of all that is no read, and nobody types such a request.
      const origin = headers["origin"] ?? (isRead ? own : "");
      const site = headers["sec-fetch-site"] ?? (isRead ? "none" : "same-origin");
      const sites = isRead ? OF_THE_PAGE : ["same-origin"];
      if (origin !== own || !sites.includes(site)) throw notThePage("another page asks");
    },
    headersOf: ({ headers }) => {
      if (!hasCookie(headers["cookie"] ?? "", cookie, secret)) throw notThePage("open the page itself first");
      return {};
    },
    pageHeaders: { "set-cookie": `${cookie}=${secret}; HttpOnly; SameSite=Strict; Path=/` },
  };
}

function notThePage(why: string): StatusError {
  return new StatusError(403, "Forbidden", why);
}

function hasCookie(header: string, name: string, value: string): boolean {
  return header.split(";").some((pair) => {
    const [key, given = ""] = pair.trim().split("=", 2);
    return key === name && sameText(given, value);
  });
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
