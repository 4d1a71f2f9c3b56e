/** Everything needed to reach one API server as one user. Made by `kubeconfig.ts`, used by `https-transport.ts`. */
export interface Connection {
  /** `https://HOST:PORT`, with a path where the API is not at the root. */
  server: string;
  tls: {
    /** PEM; the system's authorities where there is none. */
    ca?: string;
    /** PEM of the client's own certificate and its key. */
    certificate?: string;
    key?: string;
    /** The name the server's certificate must have, where it is not the host of the URL. */
    serverName?: string;
    /** Trust any certificate. */
    insecure: boolean;
  };
  auth: Auth;
  impersonate?: Impersonation;
  /** `http://` or `https://`: reached with CONNECT. */
  proxy?: string;
  /** The namespace to use where a person names none. */
  namespace: string;
  /** The kubeconfig's context, or undefined inside a cluster. */
  context?: string;
}

export type Auth =
  | { kind: "none" }
  | { kind: "token"; token: string }
  /** Read again every minute: service-account tokens are replaced while a program runs. */
  | { kind: "tokenFile"; path: string }
  | { kind: "basic"; username: string; password: string }
  | { kind: "exec"; plugin: ExecPlugin }
  | { kind: "oidc"; provider: OidcProvider };

export interface Impersonation {
  user: string;
  uid?: string;
  groups: string[];
  extra: Record<string, string[]>;
}

/** A program that gives credentials (`client.authentication.k8s.io`). */
export interface ExecPlugin {
  apiVersion: "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1";
  command: string;
  args: string[];
  /** The whole environment it runs with. */
  env: Record<string, string | undefined>;
  interactiveMode: "Never" | "IfAvailable" | "Always";
  /** Whether a person is there to be asked. */
  terminal: boolean;
  installHint?: string;
  /** Passed to the plugin if it asks for it. */
  cluster?: Record<string, unknown>;
}

/** `auth-provider: oidc` of a user: tokens that a login at an OpenID Connect issuer left in the kubeconfig. */
export interface OidcProvider {
  issuer: string;
  clientId: string;
  clientSecret?: string;
  idToken?: string;
  refreshToken?: string;
  /** PEM of the issuer's authority; the system's where there is none. */
  ca?: string;
  proxy?: string;
  /** The kubeconfig and the name of the user in it, where new tokens are written. */
  file: string;
  user: string;
}
