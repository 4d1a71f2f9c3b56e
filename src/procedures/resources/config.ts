import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { parseDocument } from "yaml";
import { parseEndpoints } from "../../datastore/config.ts";
import { errors } from "./errors.ts";

/** Where v3 resources are. */
export type DatastoreConfig = { datastore: "api" } | { datastore: "etcd"; etcd: EtcdConfig };

export interface EtcdConfig {
  endpoints: string[];
  /** PEM, read. */
  ca?: string;
  cert?: string;
  key?: string;
  user?: { name: string; password: string };
}

/** As flags, environment or the file may say it; paths, not contents. */
export interface DatastoreFlags {
  datastore?: string;
  etcdEndpoints?: string;
  etcdCa?: string;
  etcdCert?: string;
  etcdKey?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const FILE = "vendorctl.cfg";
const VARIABLES = {
  datastore: "DATASTORE_TYPE",
  etcdEndpoints: "ETCD_ENDPOINTS",
  etcdCa: "ETCD_CA_CERT_FILE",
  etcdCert: "ETCD_CERT_FILE",
  etcdKey: "ETCD_KEY_FILE",
} as const satisfies Record<keyof DatastoreFlags, string>;
/** What the public system's own tool calls the API datastore. */
const API_WORDS = ["api", "kubernetes"];

/** Flags before the environment, the environment before the file: `--config`, or the first of the usual places that is there. */
export function readDatastoreConfig(
  flags: DatastoreFlags & { config?: string },
  environment: Environment = process.env,
): DatastoreConfig {
  const { config, ...given } = flags;
  const file = readConfigFile(config, environment);
  const said = { ...file, ...fromEnvironment(environment), ...defined(given) };
  const datastore = (said.datastore ?? (said.etcdEndpoints === undefined ? "api" : "etcd")).toLowerCase();
  if (API_WORDS.includes(datastore)) return { datastore: "api" };
  if (!datastore.startsWith("etcd")) {
    throw errors.DATASTORE_CONFIG_BAD("--datastore", `"${said.datastore}" is no datastore; it is api or etcd`);
  }
  const { ETCD_USERNAME: name, ETCD_PASSWORD: password = "" } = environment;
  // A password on a command line is everybody's: only the environment has it.
  return { datastore: "etcd", etcd: { ...etcdConfig(said), ...(name && { user: { name, password } }) } };
}

function etcdConfig({ etcdEndpoints = "", etcdCa, etcdCert, etcdKey }: DatastoreFlags): EtcdConfig {
  const endpoints = parseEndpoints(etcdEndpoints, (problem) =>
    errors.DATASTORE_CONFIG_BAD("--etcd-endpoints", problem),
  );
  if ((etcdCert === undefined) !== (etcdKey === undefined)) {
    throw errors.DATASTORE_CONFIG_BAD("--etcd-cert and --etcd-key", "a client certificate and its key go together");
  }
  return {
    endpoints,
    ...(etcdCa !== undefined && { ca: readPem("--etcd-ca", etcdCa) }),
    ...(etcdCert !== undefined && { cert: readPem("--etcd-cert", etcdCert) }),
    ...(etcdKey !== undefined && { key: readPem("--etcd-key", etcdKey) }),
  };
}

function readPem(flag: string, path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw errors
      .DATASTORE_CONFIG_BAD(flag, `${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`)
      .from(error);
  }
  if (!text.includes("-----BEGIN ")) throw errors.DATASTORE_CONFIG_BAD(flag, `${path} is no PEM file`);
  return text;
}

function fromEnvironment(environment: Environment): DatastoreFlags {
  const found = Object.entries(VARIABLES).map(([field, name]) => [field, environment[name] || undefined] as const);
  return defined(Object.fromEntries(found));
}

function readConfigFile(given: string | undefined, environment: Environment): DatastoreFlags {
  const state = environment["VENDORCTL_HOME"];
  const usual = [
    FILE,
    ...(state ? [join(state, FILE)] : []),
    join(homedir(), ".config", "vendorctl", FILE),
    `/etc/vendorctl/${FILE}`,
  ];
  for (const path of given === undefined ? usual : [given]) {
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (given === undefined && (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES")) continue;
      throw errors.DATASTORE_CONFIG_BAD("--config", `${path} cannot be read: ${code}`).from(error);
    }
    return parseConfigFile(path, text);
  }
  return {};
}

const FIELDS = { endpoints: "etcdEndpoints", ca: "etcdCa", cert: "etcdCert", key: "etcdKey" } as const;

function parseConfigFile(path: string, text: string): DatastoreFlags {
  const document = parseDocument(text, { stringKeys: true });
  const [problem] = document.errors;
  if (problem) throw errors.DATASTORE_CONFIG_BAD(path, problem.message.split("\n", 1)[0]!);
  const { datastore, etcd = {}, ...others } = section(path, "the file", document.toJS() ?? {});
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined)
    throw errors.DATASTORE_CONFIG_BAD(path, `it has no field "${unknown}"; there are datastore and etcd`);
  const given: DatastoreFlags = {};
  if (datastore !== undefined) given.datastore = textOf(path, "datastore", datastore);
  for (const [key, value] of Object.entries(section(path, "etcd", etcd))) {
    if (!Object.hasOwn(FIELDS, key)) {
      throw errors.DATASTORE_CONFIG_BAD(
        path,
        `etcd has no field "${key}"; there are ${Object.keys(FIELDS).join(", ")}`,
      );
    }
    const list = Array.isArray(value) ? value.map((one) => textOf(path, `etcd.${key}`, one)).join(",") : value;
    given[FIELDS[key as keyof typeof FIELDS]] = textOf(path, `etcd.${key}`, list);
  }
  return given;
}

function section(path: string, what: string, value: unknown): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw errors.DATASTORE_CONFIG_BAD(path, `${what} is not a section of fields`);
}

function textOf(path: string, field: string, value: unknown): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  throw errors.DATASTORE_CONFIG_BAD(path, `${field} is not a text`);
}

function defined<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
