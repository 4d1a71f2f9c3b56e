import { StatusError } from "../api/status.ts";
import { type CodedError, defineErrors } from "../kit/errors.ts";

/** sysexits: a service is unavailable / a configuration error / permission denied. */
const UNAVAILABLE = 69;
const CONFIG = 78;
const NO_PERMISSION = 77;

const place = (file: string, line: number | undefined) => (line === undefined ? file : `${file}:${line}`);

export const errors = defineErrors({
  CLUSTER_UNREACHABLE: {
    args: ["server", "why"],
    say: (server: string, why: string) => `cannot reach the API server ${server}: ${why}`,
    fix: () => "check that the cluster is up and that the server address in the kubeconfig is right",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CONNECTION_LOST: {
    args: ["server", "why"],
    say: (server: string, why: string) => `the connection to the API server ${server} broke: ${why}`,
    fix: () => "try again; if it persists, check the API server's log and the proxies in between",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_UNTRUSTED: {
    args: ["server"],
    say: (server: string) => `the certificate of ${server} is not signed by an authority the kubeconfig trusts`,
    fix: () => "put the cluster's CA in certificate-authority-data (or get a new kubeconfig)",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_EXPIRED: {
    args: ["server"],
    say: (server: string) => `the certificate of ${server} has expired`,
    fix: () => "renew the API server's certificate, and check that this machine's clock is right",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_NOT_YET_VALID: {
    args: ["server"],
    say: (server: string) => `the certificate of ${server} is not valid yet`,
    fix: () => "check that this machine's clock is right",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_WRONG_HOST: {
    args: ["server", "why"],
    say: (server: string, why: string) => `the certificate of ${server} is for another host: ${why}`,
    fix: () => "use an address the certificate names, or set tls-server-name in the kubeconfig",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_INVALID: {
    args: ["server", "why"],
    say: (server: string, why: string) => `the certificate of ${server} does not verify: ${why}`,
    fix: () => "check certificate-authority-data in the kubeconfig against the server's chain",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_NOT_TLS: {
    args: ["server"],
    say: (server: string) => `${server} does not speak TLS`,
    fix: () => "if the server is plain HTTP, write http:// in the kubeconfig; otherwise check the port",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CLIENT_CERT_REFUSED: {
    args: ["server", "why"],
    say: (server: string, why: string) => `${server} refused this client's certificate: ${why}`,
    fix: () => "get a new kubeconfig: its client certificate may have expired",
    exitCode: NO_PERMISSION,
  },
  CLUSTER_CLIENT_CERT_BAD: {
    args: ["why"],
    say: (why: string) => `the client certificate or key cannot be used: ${why}`,
    fix: () => "check that client-certificate and client-key are PEM and belong together",
    exitCode: CONFIG,
  },
  CLUSTER_UNAUTHORIZED: {
    args: ["server"],
    say: (server: string) => `the API server ${server} does not accept these credentials`,
    fix: () => "log in again, or get a new kubeconfig",
    exitCode: NO_PERMISSION,
  },
  CLUSTER_FORBIDDEN: {
    args: ["message"],
    say: (message: string) => `the API server refused: ${message}`,
    fix: () => "ask for a role that allows it, or use another context with --context",
    exitCode: NO_PERMISSION,
  },
  CLUSTER_BAD_ANSWER: {
    args: ["server", "what"],
    say: (server: string, what: string) => `${server} did not answer like a Kubernetes API: ${what}`,
    fix: () => "check that the server address in the kubeconfig is an API server's",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_UNKNOWN_KIND: {
    args: ["api version", "kind"],
    say: (apiVersion: string, kind: string) => `the cluster has no kind ${kind} in ${apiVersion}`,
    fix: (apiVersion: string) => `install the CustomResourceDefinition or API that serves ${apiVersion}`,
  },
  CLUSTER_PROXY_UNSUPPORTED: {
    args: ["proxy"],
    say: (proxy: string) => `proxy ${proxy} is not an http:// or https:// proxy`,
    fix: () => "set proxy-url to an HTTP proxy that allows CONNECT",
    exitCode: CONFIG,
  },
  CLUSTER_PROXY_REFUSED: {
    args: ["proxy", "why"],
    say: (proxy: string, why: string) => `proxy ${proxy} did not connect us: ${why}`,
    fix: () => "check proxy-url in the kubeconfig",
    exitCode: UNAVAILABLE,
  },
  KUBECONFIG_MISSING: {
    args: ["file"],
    say: (file: string) => `there is no kubeconfig at ${file}`,
    fix: () => "name one with --kubeconfig or $KUBECONFIG",
    exitCode: CONFIG,
  },
  KUBECONFIG_UNREADABLE: {
    args: ["file", "why"],
    say: (file: string, why: string) => `${file} cannot be read: ${why}`,
    fix: () => "check the path and its permissions",
    exitCode: CONFIG,
  },
  KUBECONFIG_MALFORMED: {
    args: ["file", "line", "why"],
    say: (file: string, line: number | undefined, why: string) => `${place(file, line)} is not a kubeconfig: ${why}`,
    fix: () => "correct that line, or get a new kubeconfig",
    exitCode: CONFIG,
  },
  KUBECONFIG_BAD_BASE64: {
    args: ["file", "line", "field"],
    say: (file: string, line: number | undefined, field: string) => `${place(file, line)}: ${field} is not base64`,
    fix: (_file: string, _line: number | undefined, field: string) =>
      `write the PEM file through "base64 -w0", or name it with ${field.replace(/-data$/, "")}`,
    exitCode: CONFIG,
  },
  KUBECONFIG_NO_CURRENT_CONTEXT: {
    args: ["file"],
    say: (file: string) => `${file} names no current context`,
    fix: () => 'choose one with --context or "kubectl config use-context NAME"',
    exitCode: CONFIG,
  },
  KUBECONFIG_NO_SUCH_ENTRY: {
    args: ["what", "name", "have"],
    say: (what: "context" | "cluster" | "user", name: string, have: string[]) =>
      `the kubeconfig has no ${what} "${name}"${have.length === 0 ? "" : `, only ${have.join(", ")}`}`,
    fix: (what: "context" | "cluster" | "user") =>
      what === "context" ? "choose one of them with --context" : `add the ${what}, or choose another context`,
    exitCode: CONFIG,
  },
  KUBECONFIG_AUTH_PROVIDER: {
    args: ["user", "provider"],
    say: (user: string, provider: string) =>
      `user "${user}" logs in with the auth-provider "${provider}", which Kubernetes has removed`,
    fix: () => "use the provider's exec plugin (client.authentication.k8s.io/v1) instead",
    exitCode: CONFIG,
  },
  OIDC_LOGIN_NEEDED: {
    args: ["user", "what"],
    say: (user: string, what: string) => `the id-token of user "${user}" ${what}, and there is no refresh-token`,
    fix: () => "log in again with the tool that wrote the kubeconfig",
    exitCode: NO_PERMISSION,
  },
  OIDC_TOKEN_BAD: {
    args: ["user"],
    say: (user: string) => `the id-token of user "${user}" is no JSON Web Token with an expiry`,
    fix: () => "log in again with the tool that wrote the kubeconfig",
    exitCode: CONFIG,
  },
  OIDC_REFRESH_FAILED: {
    args: ["issuer", "why"],
    say: (issuer: string, why: string) => `${issuer} gave no new id-token: ${why}`,
    fix: () =>
      "log in again with the tool that wrote the kubeconfig; idp-certificate-authority names the issuer's authority",
    exitCode: NO_PERMISSION,
  },
  OIDC_NOT_SAVED: {
    args: ["file", "why"],
    say: (file: string, why: string) => `the new tokens could not be written to ${file}: ${why}`,
    fix: () => "make the file writable and log in again: the issuer may accept the old refresh-token no more",
    exitCode: CONFIG,
  },
  EXEC_PLUGIN_MISSING: {
    args: ["command", "hint"],
    say: (command: string, _hint?: string) => `the credential plugin ${command} is not installed`,
    fix: (_command: string, hint?: string) => hint ?? "install it, or put it on the PATH",
    exitCode: CONFIG,
  },
  EXEC_PLUGIN_FAILED: {
    args: ["command", "why"],
    say: (command: string, why: string) => `the credential plugin ${command} failed: ${why}`,
    fix: (command: string) => `run ${command} yourself to see its output`,
    exitCode: NO_PERMISSION,
  },
  EXEC_PLUGIN_NEEDS_TERMINAL: {
    args: ["command"],
    say: (command: string) => `the credential plugin ${command} must ask you something, and there is no terminal`,
    fix: () => "run this once in a terminal, or use credentials that need no questions",
    exitCode: NO_PERMISSION,
  },
  PROGRAM_TLS_UNREADABLE: {
    args: ["file", "why"],
    say: (file: string, why: string) => `the certificate file ${file} cannot be read: ${why}`,
    fix: () => "mount the Secret with the key pair there, or correct TLS_CERT_FILE, TLS_KEY_FILE and CA_FILE",
    exitCode: CONFIG,
  },
});

/**
 * What a person should read for a failure of the API: the client throws what the server answered (`StatusError`), because
 * programs branch on it; a printer explains it first. Anything else is returned as it is.
 */
export function explain(error: unknown, server: string): CodedError | unknown {
  if (!(error instanceof StatusError)) return error;
  if (error.code === 401) return errors.CLUSTER_UNAUTHORIZED(server).from(error);
  if (error.code === 403) return errors.CLUSTER_FORBIDDEN(error.message).from(error);
  return error;
}
