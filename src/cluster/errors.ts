import { StatusError } from "../api/status.ts";
import { type CodedError, defineErrors } from "../kit/errors.ts";

/** sysexits: a service is unavailable / a configuration error / permission denied. */
const UNAVAILABLE = 69;
const CONFIG = 78;
const NO_PERMISSION = 77;

const place = (file: string, line: number | undefined) => (line === undefined ? file : `${file}:${line}`);

export const errors = defineErrors({
  CLUSTER_UNREACHABLE: {
    means: "No connection to the API server could be made: wrong address, the server is down, or a firewall.",
    example: ["https://10.0.0.1:6443", "connection refused"],
    say: (server: string, why: string) => `cannot reach the API server ${server}: ${why}`,
    fix: () => "check that the cluster is up and that the server address in the kubeconfig is right",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CONNECTION_LOST: {
    means: "The API server closed the connection in the middle of an answer.",
    example: ["https://10.0.0.1:6443", "socket hang up"],
    say: (server: string, why: string) => `the connection to the API server ${server} broke: ${why}`,
    fix: () => "try again; if it persists, check the API server's log and the proxies in between",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_UNTRUSTED: {
    means:
      "The API server's certificate is signed by an authority that the kubeconfig does not have. It may be another cluster at this address.",
    example: ["https://10.0.0.1:6443"],
    say: (server: string) => `the certificate of ${server} is not signed by an authority the kubeconfig trusts`,
    fix: () => "put the cluster's CA in certificate-authority-data (or get a new kubeconfig)",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_EXPIRED: {
    means: "The API server's certificate has expired, or the clock of this machine is wrong.",
    example: ["https://10.0.0.1:6443"],
    say: (server: string) => `the certificate of ${server} has expired`,
    fix: () => "renew the API server's certificate, and check that this machine's clock is right",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_NOT_YET_VALID: {
    means: "The API server's certificate is valid only later. The clock of this machine is most likely wrong.",
    example: ["https://10.0.0.1:6443"],
    say: (server: string) => `the certificate of ${server} is not valid yet`,
    fix: () => "check that this machine's clock is right",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_WRONG_HOST: {
    means: "The API server's certificate does not name the address in the kubeconfig.",
    example: ["https://10.0.0.1:6443", "it is for kubernetes, 10.96.0.1"],
    say: (server: string, why: string) => `the certificate of ${server} is for another host: ${why}`,
    fix: () => "use an address the certificate names, or set tls-server-name in the kubeconfig",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CERT_INVALID: {
    means: "The API server's certificate could not be verified.",
    example: ["https://10.0.0.1:6443", "unable to get issuer certificate"],
    say: (server: string, why: string) => `the certificate of ${server} does not verify: ${why}`,
    fix: () => "check certificate-authority-data in the kubeconfig against the server's chain",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_NOT_TLS: {
    means: "The kubeconfig has an https address, and the server there answers without TLS.",
    example: ["https://10.0.0.1:8080"],
    say: (server: string) => `${server} does not speak TLS`,
    fix: () => "if the server is plain HTTP, write http:// in the kubeconfig; otherwise check the port",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_CLIENT_CERT_REFUSED: {
    means: "The API server does not accept the client certificate of the kubeconfig.",
    example: ["https://10.0.0.1:6443", "certificate expired"],
    say: (server: string, why: string) => `${server} refused this client's certificate: ${why}`,
    fix: () => "get a new kubeconfig: its client certificate may have expired",
    exitCode: NO_PERMISSION,
  },
  CLUSTER_CLIENT_CERT_BAD: {
    means: "The client certificate or key of the kubeconfig is not a PEM file, or the two do not belong together.",
    example: ["key values mismatch"],
    say: (why: string) => `the client certificate or key cannot be used: ${why}`,
    fix: () => "check that client-certificate and client-key are PEM and belong together",
    exitCode: CONFIG,
  },
  CLUSTER_UNAUTHORIZED: {
    means:
      "The API server does not know the credentials of the kubeconfig: a token or certificate has expired or is of another cluster.",
    example: ["https://10.0.0.1:6443"],
    say: (server: string) => `the API server ${server} does not accept these credentials`,
    fix: () => "log in again, or get a new kubeconfig",
    exitCode: NO_PERMISSION,
  },
  CLUSTER_FORBIDDEN: {
    means: "The API server knows you and does not allow the request.",
    example: ['nodes is forbidden: User "jane" cannot list resource "nodes"'],
    say: (message: string) => `the API server refused: ${message}`,
    fix: () => "ask for a role that allows it, or use another context with --context",
    exitCode: NO_PERMISSION,
  },
  CLUSTER_BAD_ANSWER: {
    means:
      "The server at the address of the kubeconfig is not a Kubernetes API server, or a proxy answers in its place.",
    example: ["https://10.0.0.1:443", "it sent text/html"],
    say: (server: string, what: string) => `${server} did not answer like a Kubernetes API: ${what}`,
    fix: () => "check that the server address in the kubeconfig is an API server's",
    exitCode: UNAVAILABLE,
  },
  CLUSTER_UNKNOWN_KIND: {
    means: "A command needs a kind of resource that the cluster does not serve: its CRD is not installed.",
    example: ["operator.vendor.io/v1", "Installation"],
    say: (apiVersion: string, kind: string) => `the cluster has no kind ${kind} in ${apiVersion}`,
    fix: (apiVersion: string) => `install the CustomResourceDefinition or API that serves ${apiVersion}`,
  },
  CLUSTER_PROXY_UNSUPPORTED: {
    means: "The proxy-url of the kubeconfig is of a kind that is not supported, such as SOCKS.",
    example: ["socks5://127.0.0.1:1080"],
    say: (proxy: string) => `proxy ${proxy} is not an http:// or https:// proxy`,
    fix: () => "set proxy-url to an HTTP proxy that allows CONNECT",
    exitCode: CONFIG,
  },
  CLUSTER_PROXY_REFUSED: {
    means: "The HTTP proxy of the kubeconfig refused to connect to the API server.",
    example: ["http://proxy:3128", "403 Forbidden"],
    say: (proxy: string, why: string) => `proxy ${proxy} did not connect us: ${why}`,
    fix: () => "check proxy-url in the kubeconfig",
    exitCode: UNAVAILABLE,
  },
  KUBECONFIG_MISSING: {
    means: "There is no kubeconfig to find the cluster with.",
    example: [".kube/config"],
    say: (file: string) => `there is no kubeconfig at ${file}`,
    fix: () => "name one with --kubeconfig or $KUBECONFIG",
    exitCode: CONFIG,
  },
  KUBECONFIG_UNREADABLE: {
    means: "The kubeconfig exists and cannot be read.",
    example: [".kube/config", "permission denied"],
    say: (file: string, why: string) => `${file} cannot be read: ${why}`,
    fix: () => "check the path and its permissions",
    exitCode: CONFIG,
  },
  KUBECONFIG_MALFORMED: {
    means: "The kubeconfig is not YAML, or a field in it has the wrong type.",
    example: [".kube/config", 12, "clusters is not a list"],
    say: (file: string, line: number | undefined, why: string) => `${place(file, line)} is not a kubeconfig: ${why}`,
    fix: () => "correct that line, or get a new kubeconfig",
    exitCode: CONFIG,
  },
  KUBECONFIG_BAD_BASE64: {
    means: "A field of the kubeconfig that ends in -data is not base64.",
    example: [".kube/config", 6, "certificate-authority-data"],
    say: (file: string, line: number | undefined, field: string) => `${place(file, line)}: ${field} is not base64`,
    fix: (_file: string, _line: number | undefined, field: string) =>
      `write the PEM file through "base64 -w0", or name it with ${field.replace(/-data$/, "")}`,
    exitCode: CONFIG,
  },
  KUBECONFIG_NO_CURRENT_CONTEXT: {
    means: "The kubeconfig has no current-context, and no --context was given.",
    example: [".kube/config"],
    say: (file: string) => `${file} names no current context`,
    fix: () => 'choose one with --context or "kubectl config use-context NAME"',
    exitCode: CONFIG,
  },
  KUBECONFIG_NO_SUCH_ENTRY: {
    means: "The kubeconfig refers to a context, cluster or user that it does not have.",
    example: ["context", "prod", ["dev", "test"]],
    say: (what: "context" | "cluster" | "user", name: string, have: string[]) =>
      `the kubeconfig has no ${what} "${name}"${have.length === 0 ? "" : `, only ${have.join(", ")}`}`,
    fix: (what: "context" | "cluster" | "user") =>
      what === "context" ? "choose one of them with --context" : `add the ${what}, or choose another context`,
    exitCode: CONFIG,
  },
  KUBECONFIG_AUTH_PROVIDER: {
    means: "The user of the kubeconfig logs in with an auth-provider that Kubernetes no longer has (gcp, azure).",
    example: ["gke", "gcp"],
    say: (user: string, provider: string) =>
      `user "${user}" logs in with the auth-provider "${provider}", which Kubernetes has removed`,
    fix: () => "use the provider's exec plugin (client.authentication.k8s.io/v1) instead",
    exitCode: CONFIG,
  },
  OIDC_LOGIN_NEEDED: {
    means: "The OIDC token of the kubeconfig is no longer valid and cannot be renewed.",
    example: ["jane", "has expired"],
    say: (user: string, what: string) => `the id-token of user "${user}" ${what}, and there is no refresh-token`,
    fix: () => "log in again with the tool that wrote the kubeconfig",
    exitCode: NO_PERMISSION,
  },
  OIDC_TOKEN_BAD: {
    means: "The id-token in the kubeconfig is not a token of OIDC.",
    example: ["jane"],
    say: (user: string) => `the id-token of user "${user}" is no JSON Web Token with an expiry`,
    fix: () => "log in again with the tool that wrote the kubeconfig",
    exitCode: CONFIG,
  },
  OIDC_REFRESH_FAILED: {
    means: "The identity provider did not renew the OIDC token.",
    example: ["https://login.example.com", "invalid_grant"],
    say: (issuer: string, why: string) => `${issuer} gave no new id-token: ${why}`,
    fix: () =>
      "log in again with the tool that wrote the kubeconfig; idp-certificate-authority names the issuer's authority",
    exitCode: NO_PERMISSION,
  },
  OIDC_NOT_SAVED: {
    means: "The OIDC token was renewed and could not be written back to the kubeconfig.",
    example: [".kube/config", "permission denied"],
    say: (file: string, why: string) => `the new tokens could not be written to ${file}: ${why}`,
    fix: () => "make the file writable and log in again: the issuer may accept the old refresh-token no more",
    exitCode: CONFIG,
  },
  EXEC_PLUGIN_MISSING: {
    means: "The kubeconfig gets credentials from a program that is not installed here.",
    example: ["aws", "install the AWS CLI"],
    say: (command: string, _hint?: string) => `the credential plugin ${command} is not installed`,
    fix: (_command: string, hint?: string) => hint ?? "install it, or put it on the PATH",
    exitCode: CONFIG,
  },
  EXEC_PLUGIN_FAILED: {
    means: "The program that the kubeconfig gets credentials from ended with an error.",
    example: ["aws", "exit status 255"],
    say: (command: string, why: string) => `the credential plugin ${command} failed: ${why}`,
    fix: (command: string) => `run ${command} yourself to see its output`,
    exitCode: NO_PERMISSION,
  },
  EXEC_PLUGIN_NEEDS_TERMINAL: {
    means: "The program that the kubeconfig gets credentials from wants to ask something, and there is no terminal.",
    example: ["kubelogin"],
    say: (command: string) => `the credential plugin ${command} must ask you something, and there is no terminal`,
    fix: () => "run this once in a terminal, or use credentials that need no questions",
    exitCode: NO_PERMISSION,
  },
  PROGRAM_TLS_UNREADABLE: {
    means: "A program of the service cannot read its certificate, key or CA file.",
    example: ["/certs/tls.crt", "ENOENT"],
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
