import { CodedError } from "../kit/errors.ts";
import { errors } from "./errors.ts";

/** Whatever Node reports about a connection, as one of our sentences. Everything passes through here exactly once. */
export function connectionFailure(error: unknown, server: string): CodedError {
  if (error instanceof CodedError) return error;
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  return sentenceFor(code, error, message, server).from(error);
}

function sentenceFor(code: string, error: unknown, message: string, server: string): CodedError {
  const unreachable = UNREACHABLE[code];
  if (unreachable !== undefined) return errors.CLUSTER_UNREACHABLE(server, unreachable);
  if (UNTRUSTED.has(code)) return errors.CLUSTER_CERT_UNTRUSTED(server);
  if (code === "CERT_HAS_EXPIRED") return errors.CLUSTER_CERT_EXPIRED(server);
  if (code === "CERT_NOT_YET_VALID") return errors.CLUSTER_CERT_NOT_YET_VALID(server);
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return errors.CLUSTER_CERT_WRONG_HOST(server, (error as { reason?: string }).reason ?? message);
  }
  if (/^(CERT_|CRL_|INVALID_|PATH_LENGTH|HOSTNAME_MISMATCH)/.test(code)) {
    return errors.CLUSTER_CERT_INVALID(server, message);
  }
  if (/^ERR_SSL_.*ALERT/.test(code)) return errors.CLUSTER_CLIENT_CERT_REFUSED(server, alertName(code));
  if (/^(EPROTO|ERR_SSL_)/.test(code)) return errors.CLUSTER_NOT_TLS(server);
  if (code.startsWith("HPE_")) return errors.CLUSTER_BAD_ANSWER(server, "what it sent is not HTTP");
  return errors.CLUSTER_CONNECTION_LOST(server, LOST[code] ?? message);
}

const UNREACHABLE: Record<string, string> = {
  ECONNREFUSED: "nothing listens there (connection refused)",
  ENOTFOUND: "its name does not resolve",
  EAI_AGAIN: "its name cannot be resolved just now",
  EHOSTUNREACH: "there is no route to it",
  ENETUNREACH: "there is no route to its network",
  EADDRNOTAVAIL: "its address cannot be used from here",
  ETIMEDOUT: "it did not answer in time",
};

const LOST: Record<string, string> = { ECONNRESET: "it hung up", EPIPE: "it hung up", ECONNABORTED: "it hung up" };

const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
]);

/** `ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED` -> `certificate required`. */
function alertName(code: string): string {
  return code
    .replace(/^.*ALERT_/, "")
    .replaceAll("_", " ")
    .toLowerCase();
}
