import { readFile } from "node:fs/promises";
import { type Clock, systemClock } from "../kit/clock.ts";
import type { Auth, Connection } from "./connection.ts";
import { errors } from "./errors.ts";
import { runExecPlugin } from "./exec-plugin.ts";
import { oidcTokens } from "./oidc.ts";

/** Who we are, for one request. */
export interface Identity {
  authorization?: string;
  certificate?: string;
  key?: string;
}

export interface Credentials {
  current(): Promise<Identity>;
  /** The server refused this identity: forget it. True if asking again may give another. */
  refused(identity: Identity): boolean;
}

/** A rotated token file is noticed within this long. */
const TOKEN_FILE_MS = 60_000;
/** A credential is replaced a little before it ends, so that no request carries it over the edge. */
const EXPIRY_MARGIN_MS = 10_000;

export function credentialsOf(connection: Connection, clock: Clock = systemClock): Credentials {
  const { auth, tls } = connection;
  const own = tls.certificate === undefined ? {} : { certificate: tls.certificate, key: tls.key };
  const source = sourceOf(auth);
  if (typeof source !== "function") {
    const identity = { ...own, ...source };
    return { current: async () => identity, refused: () => false };
  }
  return renewing(async () => {
    const { identity, validMs } = await source(clock.now());
    return { identity: { ...own, ...identity }, validMs };
  }, clock);
}

interface Fresh {
  identity: Identity;
  validMs: number;
}

/** A constant, or how to get the next one. */
function sourceOf(auth: Auth): Identity | ((now: number) => Promise<Fresh>) {
  switch (auth.kind) {
    case "none":
      return {};
    case "token":
      return bearer(auth.token);
    case "basic":
      return { authorization: `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString("base64")}` };
    case "tokenFile":
      return async () => ({ identity: bearer(await readToken(auth.path)), validMs: TOKEN_FILE_MS });
    case "exec":
      return async (now) => {
        const { token, certificate, key, expiresAt } = await runExecPlugin(auth.plugin);
        const identity = {
          ...(token === undefined ? {} : bearer(token)),
          ...(certificate === undefined ? {} : { certificate, key }),
        };
        return { identity, validMs: expiresAt === undefined ? Infinity : expiresAt - now - EXPIRY_MARGIN_MS };
      };
    case "oidc": {
      const tokens = oidcTokens(auth.provider, EXPIRY_MARGIN_MS);
      return async (now) => {
        const { token, expiresAt } = await tokens(now);
        return { identity: bearer(token), validMs: expiresAt - now - EXPIRY_MARGIN_MS };
      };
    }
  }
}

function bearer(token: string): Identity {
  return { authorization: `Bearer ${token}` };
}

async function readToken(path: string): Promise<string> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (cause) {
    throw errors.KUBECONFIG_UNREADABLE(path, (cause as NodeJS.ErrnoException).code ?? "no such file").from(cause);
  }
}

/** Keeps the newest identity; many requests that need the next one ask for it once. */
function renewing(renew: () => Promise<Fresh>, clock: Clock): Credentials {
  let held: { identity: Identity; until: number } | undefined;
  let asking: Promise<Identity> | undefined;

  const ask = async (): Promise<Identity> => {
    try {
      const { identity, validMs } = await renew();
      held = { identity, until: clock.now() + validMs };
      return identity;
    } finally {
      asking = undefined;
    }
  };

  return {
    async current() {
      if (held && clock.now() < held.until) return held.identity;
      asking ??= ask();
      return asking;
    },
    refused(identity) {
      if (held?.identity === identity) held = undefined;
      return true;
    },
  };
}
