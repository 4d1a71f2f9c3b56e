import { readFileSync } from "node:fs";
import { errors } from "./errors.ts";
import type { EtcdOptions } from "./etcd/etcd-connection.ts";

type Env = Readonly<Partial<Record<keyof typeof ETCD_VARIABLES | "DATASTORE_TYPE", string | undefined>>>;

/** Every variable that is read here, and what it is; vendorctl has the same. */
export const ETCD_VARIABLES = {
  ETCD_ENDPOINTS: "addresses of etcd's members, separated by commas (required with etcd)",
  ETCD_CA_CERT_FILE: "file of the CA of etcd's certificates",
  ETCD_CERT_FILE: "file of the client certificate",
  ETCD_KEY_FILE: "file of its key",
  ETCD_USERNAME: "user, if etcd requires one",
  ETCD_PASSWORD: "password of the user",
} as const;

/** How a program reaches etcd, as its container's environment says; undefined where the datastore is the Kubernetes API. */
export function readEtcdOptions(env: Env): EtcdOptions | undefined {
  if (!env["DATASTORE_TYPE"]?.startsWith("etcd")) return undefined;
  const [ca, cert, key] = [env["ETCD_CA_CERT_FILE"], env["ETCD_CERT_FILE"], env["ETCD_KEY_FILE"]];
  if (!cert !== !key)
    throw errors.ETCD_ENV("ETCD_CERT_FILE, ETCD_KEY_FILE", "a client certificate and its key go together");
  const { ETCD_USERNAME: name, ETCD_PASSWORD: password } = env;
  return {
    endpoints: parseEndpoints(env["ETCD_ENDPOINTS"] ?? "", (problem) => errors.ETCD_ENV("ETCD_ENDPOINTS", problem)),
    tls: () => ({ ...pem("ca", ca), ...pem("cert", cert), ...pem("key", key) }),
    ...(name && { user: { name, password: password ?? "" } }),
  };
}

export function parseEndpoints(text: string, refuse: (problem: string) => Error): string[] {
  const endpoints = text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  if (endpoints.length === 0) throw refuse("the etcd datastore needs the address of at least one etcd");
  for (const endpoint of endpoints) {
    const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
    if (url?.protocol !== "http:" && url?.protocol !== "https:") {
      throw refuse(`"${endpoint}" is not an address such as https://10.0.0.1:2379`);
    }
  }
  return endpoints;
}

/** The manifest's Secret has every file; one that the etcd does not require is empty. */
function pem(field: "ca" | "cert" | "key", path: string | undefined): Record<string, string> {
  const text = path ? readFileSync(path, "utf8") : "";
  return text.trim() === "" ? {} : { [field]: text };
}
