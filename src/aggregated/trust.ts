import type { KubeObject } from "../api/object.ts";
import type { TlsTrust } from "../apiserver/http.ts";
import type { Client } from "../cluster/client.ts";
import { CONFIG_MAPS } from "../cluster/kinds.ts";
import { programTls } from "../cluster/program-tls.ts";
import { errors } from "./errors.ts";

/** Where every cluster says whose word about a user an aggregated API may take. */
const AUTHENTICATION = { namespace: "kube-system", name: "extension-apiserver-authentication" };

/** Who we are by our files, and whom to trust by the cluster's word. */
export async function readTrust(
  client: Client,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<TlsTrust> {
  const own = programTls(env);
  if (!own) throw errors.AGGREGATED_NO_KEY_PAIR();
  const { data = {} } = await client.get<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, AUTHENTICATION, {
    signal,
  });
  return {
    server: { certificate: own.certificate, key: own.key },
    clientAuthority: data["client-ca-file"],
    frontProxyAuthority: data["requestheader-client-ca-file"],
    frontProxyNames: namesIn(data["requestheader-allowed-names"]),
  };
}

/** A JSON list in a string. One that cannot be read allows no name: taking it for "any name" would be a hole. */
function namesIn(text: string | undefined): string[] {
  if (text === undefined || text.trim() === "") return [];
  try {
    const names: unknown = JSON.parse(text);
    return Array.isArray(names) ? names.map(String) : NO_CLIENTS;
  } catch {
    return NO_CLIENTS;
  }
}

const NO_CLIENTS = [""];
