import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { OidcProvider } from "./connection.ts";
import { connectionFailure } from "./connection-failure.ts";
import { errors } from "./errors.ts";
import { writeOidcTokens } from "./kubeconfig-tokens.ts";
import { proxyAgent } from "./proxy.ts";

const TIMEOUT_MS = 10_000;
/** More than any provider answers with. */
const MOST_BYTES = 1_000_000;

interface IdToken {
  token: string;
  /** Milliseconds since 1970. */
  expiresAt: number;
}

/**
 * The id-token of a kubeconfig's `auth-provider: oidc`: used while it is valid, then replaced with the refresh-token at the issuer's token endpoint.
 * New tokens are kept here and written back to the kubeconfig: an issuer may accept a refresh-token only once.
 */
export function oidcTokens(provider: OidcProvider, marginMs: number): (now: number) => Promise<IdToken> {
  let { idToken, refreshToken } = provider;
  return async (now) => {
    const expiresAt = idToken === undefined ? 0 : expiryOf(provider, idToken);
    if (idToken !== undefined && expiresAt - marginMs > now) return { token: idToken, expiresAt };
    if (refreshToken === undefined)
      throw errors.OIDC_LOGIN_NEEDED(provider.user, expiresAt > 0 ? "has expired" : "is missing");
    const fresh = await refresh(provider, refreshToken);
    const until = expiryOf(provider, fresh.idToken);
    ({ idToken } = fresh);
    refreshToken = fresh.refreshToken ?? refreshToken;
    await writeOidcTokens(provider, { idToken, refreshToken });
    return { token: idToken, expiresAt: until };
  };
}

/** `exp` of the token. Its signature is for the API server to check. */
function expiryOf({ user }: OidcProvider, token: string): number {
  try {
    const payload = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { exp?: unknown };
    if (typeof payload.exp === "number") return payload.exp * 1_000;
  } catch (cause) {
    throw errors.OIDC_TOKEN_BAD(user).from(cause);
  }
  throw errors.OIDC_TOKEN_BAD(user);
}

interface Fresh {
  idToken: string;
  refreshToken?: string;
}

async function refresh(provider: OidcProvider, refreshToken: string): Promise<Fresh> {
  const { issuer, clientId, clientSecret } = provider;
  const { endpoint, basic } = await discover(provider);
  const form = new URLSearchParams({ grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId });
  const login = [clientId, clientSecret ?? ""].map(encodeURIComponent).join(":");
  const headers: Record<string, string> =
    basic && clientSecret !== undefined ? { authorization: `Basic ${btoa(login)}` } : {};
  if (!basic && clientSecret !== undefined) form.set("client_secret", clientSecret);
  const answer = await ask(provider, endpoint, { form: form.toString(), headers });
  const { id_token: idToken, refresh_token: next, error, error_description: why } = answer.fields;
  if (answer.status !== 200) {
    const said = textOf(why) ?? textOf(error) ?? `it answered with status ${answer.status}`;
    throw errors.OIDC_REFRESH_FAILED(issuer, said);
  }
  if (typeof idToken !== "string") {
    throw errors.OIDC_REFRESH_FAILED(issuer, "its answer has no id_token; the scope openid was not requested at login");
  }
  return { idToken, ...(typeof next === "string" && next !== "" && { refreshToken: next }) };
}

/** Where tokens are, and whether the client's secret goes into a header, which is the default of OpenID Connect, or into the form. */
async function discover(provider: OidcProvider): Promise<{ endpoint: string; basic: boolean }> {
  const { issuer } = provider;
  const { status, fields } = await ask(provider, `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (status !== 200) throw errors.OIDC_REFRESH_FAILED(issuer, `its discovery document answered with status ${status}`);
  const { token_endpoint: endpoint, token_endpoint_auth_methods_supported: methods } = fields;
  if (typeof endpoint !== "string" || !URL.canParse(endpoint) || !/^https?:/.test(endpoint)) {
    throw errors.OIDC_REFRESH_FAILED(issuer, "its discovery document names no token_endpoint");
  }
  // The secrets of the user go there: never in the clear because a document says so.
  if (issuer.startsWith("https:") && !endpoint.startsWith("https:")) {
    throw errors.OIDC_REFRESH_FAILED(issuer, "its token_endpoint is not https");
  }
  return { endpoint, basic: !(Array.isArray(methods) && methods.includes("client_secret_post")) };
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value.slice(0, 200) : undefined;

interface Answer {
  status: number;
  fields: Record<string, unknown>;
}

interface Sent {
  form: string;
  headers: Record<string, string>;
}

function ask(provider: OidcProvider, address: string, sent?: Sent): Promise<Answer> {
  const url = new URL(address);
  const secure = url.protocol === "https:";
  const options = { ...(provider.ca !== undefined && { ca: provider.ca }) };
  const plain = secure ? new HttpsAgent(options) : new HttpAgent();
  const agent = provider.proxy === undefined ? plain : proxyAgent(provider.proxy, options, secure, TIMEOUT_MS);
  const posted = sent && { ...sent.headers, "content-type": "application/x-www-form-urlencoded" };
  const headers = { accept: "application/json", ...posted };
  return new Promise<Answer>((resolve, reject) => {
    const request = (secure ? httpsRequest : httpRequest)(
      url,
      { method: sent ? "POST" : "GET", headers, agent, timeout: TIMEOUT_MS },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
          if (text.length > MOST_BYTES) request.destroy(new Error("its answer is too long"));
        });
        response.on("error", reject);
        response.on("end", () => resolve({ status: response.statusCode ?? 0, fields: fieldsOf(text) }));
      },
    );
    request.on("timeout", () => request.destroy(Object.assign(new Error("timeout"), { code: "ETIMEDOUT" })));
    request.on("error", reject);
    request.end(sent?.form);
  })
    .catch((error: unknown) => {
      throw errors.OIDC_REFRESH_FAILED(provider.issuer, connectionFailure(error, url.origin).message).from(error);
    })
    .finally(() => agent.destroy());
}

function fieldsOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    // Not JSON: the status decides, and a field that is needed is missed there.
    return {};
  }
}
