import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { fakeClock } from "../kit/fake-clock.ts";
import { type Credentials, credentialsOf } from "./credentials.ts";
import { loadConnection } from "./kubeconfig.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const HOUR = 3_600_000;

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
/** Unsigned: only the API server looks at a signature. */
const idToken = (endsAt: number) => `${encoded({ alg: "none" })}.${encoded({ exp: endsAt / 1_000 })}.`;

interface Asked {
  form: URLSearchParams;
  authorization: string | undefined;
}

/** An issuer that accepts each refresh-token once. */
class Issuer {
  readonly asked: Asked[] = [];
  methods: string[] | undefined;
  valid = "refresh-0";
  endsAt = NOW + 2 * HOUR;
  private readonly server: Server = createServer(async (request, response) => {
    const [status, body] = await this.answer(request);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });

  get address(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/realm`;
  }

  start = () => new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
  stop = () => new Promise((resolve) => this.server.close(resolve));

  private async answer(request: IncomingMessage): Promise<[status: number, body: object]> {
    if (request.url === "/realm/.well-known/openid-configuration") {
      const methods = this.methods && { token_endpoint_auth_methods_supported: this.methods };
      return [200, { token_endpoint: `${this.address}/token`, ...methods }];
    }
    const form = new URLSearchParams(await text(request));
    this.asked.push({ form, authorization: request.headers.authorization });
    if (form.get("refresh_token") !== this.valid) {
      return [400, { error: "invalid_grant", error_description: "the session is over" }];
    }
    this.valid = `refresh-${this.asked.length}`;
    return [200, { id_token: idToken(this.endsAt), refresh_token: this.valid }];
  }
}

describe("the auth-provider oidc of a kubeconfig", () => {
  const directory = mkdtempSync(join(tmpdir(), "oidc-"));
  const file = join(directory, "config");
  afterAll(() => rmSync(directory, { recursive: true }));
  let issuer: Issuer;
  beforeEach(async () => {
    issuer = new Issuer();
    await issuer.start();
  });
  afterEach(async () => {
    await issuer.stop();
    rmSync(`${file}.lock`, { force: true });
  });

  /** Of a user with these tokens, at an issuer whose client has a secret. */
  function credentials(tokens: Record<string, string>, clock = fakeClock(NOW)): Credentials {
    const config = {
      "idp-issuer-url": issuer.address,
      "client-id": "kubernetes",
      "client-secret": "s/cret",
      ...tokens,
    };
    const lines = Object.entries(config).map(([key, value]) => `          ${key}: ${value}`);
    writeFileSync(
      file,
      `apiVersion: v1
kind: Config
current-context: one # kept
contexts: [{name: one, context: {cluster: one, user: jane}}]
clusters: [{name: one, cluster: {server: "https://unused"}}]
users:
  - name: other
    user: {token: untouched}
  - name: jane
    user:
      auth-provider:
        name: oidc
        config:
${lines.join("\n")}
`,
      { mode: 0o600 },
    );
    return credentialsOf(loadConnection({ kubeconfig: file }), clock);
  }

  const saved = () => parse(readFileSync(file, "utf8")).users[1].user["auth-provider"].config as Record<string, string>;
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it("is its id-token, while that is valid", async () => {
    const token = idToken(NOW + HOUR);
    expect(await credentials({ "id-token": token }).current()).toEqual(bearer(token));
    expect(issuer.asked).toEqual([]);
  });

  it("gets a new one at the issuer shortly before the end, and saves it with the next refresh-token", async () => {
    const clock = fakeClock(NOW);
    const first = idToken(NOW + HOUR);
    const on = credentials({ "id-token": first, "refresh-token": "refresh-0" }, clock);
    expect(await on.current()).toEqual(bearer(first));
    await clock.advance(HOUR - 5_000);
    expect(await on.current()).toEqual(bearer(idToken(NOW + 2 * HOUR)));
    expect(saved()).toMatchObject({ "id-token": idToken(NOW + 2 * HOUR), "refresh-token": "refresh-1" });
    issuer.endsAt = NOW + 3 * HOUR;
    await clock.advance(HOUR);
    expect(await on.current()).toEqual(bearer(idToken(NOW + 3 * HOUR)));
    expect(issuer.asked.map(({ form }) => form.get("refresh_token"))).toEqual(["refresh-0", "refresh-1"]);
  });

  it("keeps everything else of the file, which only its owner can read", async () => {
    await credentials({ "refresh-token": "refresh-0" }).current();
    const after = readFileSync(file, "utf8");
    expect(after).toContain("current-context: one # kept");
    expect(after).toContain("user: {token: untouched}".replace("{", "{ ").replace("}", " }"));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(saved()["client-secret"]).toBe("s/cret");
  });

  it("sends the client's secret the way the issuer asks for", async () => {
    await credentials({ "refresh-token": "refresh-0" }).current();
    issuer.methods = ["client_secret_post"];
    await credentials({ "refresh-token": "refresh-1" }).current();
    const [basic, post] = issuer.asked;
    expect(basic).toMatchObject({ authorization: `Basic ${btoa("kubernetes:s%2Fcret")}` });
    expect(basic?.form.has("client_secret")).toBe(false);
    expect([post?.authorization, post?.form.get("client_secret")]).toEqual([undefined, "s/cret"]);
  });

  it.each([
    [
      "has ended, and there is no refresh-token",
      () => ({ "id-token": idToken(NOW) }),
      "OIDC_LOGIN_NEEDED",
      "has expired",
    ],
    ["is missing", () => ({}), "OIDC_LOGIN_NEEDED", "is missing"],
    ["is no token", () => ({ "id-token": "abc" }), "OIDC_TOKEN_BAD", "jane"],
    ["is refused by the issuer", () => ({ "refresh-token": "stolen" }), "OIDC_REFRESH_FAILED", "the session is over"],
  ])("says what is wrong when it %s", async (_when, tokens, code, message) => {
    const refused = credentials(tokens()).current();
    await expect(refused).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it("says so when the issuer does not answer, or another program writes the file", async () => {
    const on = credentials({ "refresh-token": "refresh-0" });
    writeFileSync(`${file}.lock`, "");
    await expect(on.current()).rejects.toMatchObject({ code: "OIDC_NOT_SAVED" });
    const away = credentials({ "refresh-token": "refresh-1", "idp-issuer-url": "http://127.0.0.1:1" });
    await expect(away.current()).rejects.toMatchObject({ code: "OIDC_REFRESH_FAILED" });
  });
});
