import type { ClusterEnv } from "./config.ts";
import type { OidcProvider } from "./connection.ts";
import type { Section } from "./kubeconfig-file.ts";
import { proxyFromEnv } from "./proxy-env.ts";

/** `users[].user.auth-provider` of a kubeconfig, of the name `oidc`. */
export function oidcProviderOf(provider: Section, user: string, env: ClusterEnv): OidcProvider {
  const config = provider.section("config");
  const needed = (field: string): string => {
    const text = config?.text(field);
    if (text === undefined) throw (config ?? provider).malformed(undefined, `auth-provider oidc has no ${field}`);
    return text;
  };
  const issuer = needed("idp-issuer-url");
  if (!URL.canParse(issuer) || !/^https?:/.test(issuer)) {
    throw (config ?? provider).malformed("idp-issuer-url", `"${issuer}" is not an https:// or http:// address`);
  }
  return {
    issuer,
    clientId: needed("client-id"),
    clientSecret: config?.text("client-secret"),
    idToken: config?.text("id-token"),
    refreshToken: config?.text("refresh-token"),
    ca: config?.content("idp-certificate-authority"),
    proxy: proxyFromEnv(issuer, env),
    file: provider.file,
    user,
  };
}
