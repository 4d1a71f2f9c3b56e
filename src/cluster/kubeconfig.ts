import { delimiter, join } from "node:path";
import { type ClusterEnv, readClusterEnv } from "./config.ts";
import type { Auth, Connection, Impersonation } from "./connection.ts";
import { errors } from "./errors.ts";
import { execPluginOf } from "./exec-config.ts";
import { inClusterConnection } from "./in-cluster.ts";
import { readKubeconfigFile, type Section } from "./kubeconfig-file.ts";
import { oidcProviderOf } from "./oidc-config.ts";
import { checkProxy } from "./proxy.ts";
import { proxyFromEnv } from "./proxy-env.ts";

/** What a person may say on the command line, as kubectl spells it. */
export interface ConnectionFlags {
  kubeconfig?: string;
  context?: string;
  namespace?: string;
  as?: string;
  asUid?: string;
  asGroups?: string[];
}

/**
 * The connection kubectl would use: the file of `--kubeconfig`, or those of `$KUBECONFIG` merged (the first to say something wins),
 * or `~/.kube/config`; with none of them, the pod's own service account.
 */
export function loadConnection(flags: ConnectionFlags = {}, env: ClusterEnv = readClusterEnv()): Connection {
  const { files, must } = candidates(flags, env);
  const found = files.map((file) => [file, readKubeconfigFile(file)] as const);
  const sections = found.flatMap(([, section]) => (section ? [section] : []));
  const missing = files.join(delimiter);
  if (sections.length === 0) {
    const inCluster = must ? undefined : inClusterConnection(env);
    if (!inCluster) throw errors.KUBECONFIG_MISSING(missing);
    return { ...inCluster, ...overrides(flags, inCluster) };
  }
  const wanted = flags.context ?? first(sections, (section) => section.text("current-context"));
  if (wanted === undefined) throw errors.KUBECONFIG_NO_CURRENT_CONTEXT(missing);
  const connection = connectionOf(sections, wanted, env);
  return { ...connection, ...overrides(flags, connection) };
}

/** The contexts of the files a connection would be made from, the first file's first. */
export function contextNames(flags: Pick<ConnectionFlags, "kubeconfig">, env: ClusterEnv = readClusterEnv()): string[] {
  const sections = candidates(flags, env).files.flatMap((file) => readKubeconfigFile(file) ?? []);
  const names = sections.flatMap((section) => section.sections("contexts")).flatMap((each) => each.text("name") ?? []);
  return [...new Set(names)];
}

function candidates(flags: ConnectionFlags, env: ClusterEnv): { files: string[]; must: boolean } {
  if (flags.kubeconfig) return { files: [flags.kubeconfig], must: true };
  const listed = (env.kubeconfig ?? "").split(delimiter).filter((file) => file !== "");
  if (listed.length > 0) return { files: listed, must: false };
  return { files: [join(env.home ?? "/", ".kube", "config")], must: false };
}

function overrides(flags: ConnectionFlags, { namespace, impersonate }: Connection): Partial<Connection> {
  const as: Impersonation | undefined = flags.as
    ? { user: flags.as, uid: flags.asUid, groups: flags.asGroups ?? [], extra: {} }
    : impersonate;
  return { namespace: flags.namespace ?? namespace, ...(as ? { impersonate: as } : {}) };
}

function connectionOf(sections: Section[], contextName: string, env: ClusterEnv): Connection {
  const context = entry(sections, "context", contextName);
  const clusterName = context.text("cluster");
  if (clusterName === undefined) throw context.malformed(undefined, `context "${contextName}" names no cluster`);
  const cluster = entry(sections, "cluster", clusterName);
  const userName = context.text("user");
  const user = userName === undefined ? undefined : entry(sections, "user", userName);
  const server = serverOf(cluster, clusterName);
  const tls = tlsOf(cluster, user);
  const proxy = cluster.text("proxy-url") ?? proxyFromEnv(server, env);
  return {
    server,
    tls,
    auth: user === undefined ? { kind: "none" } : authOf(user, userName as string, cluster, env),
    impersonate: user && impersonationOf(user),
    proxy: proxy === undefined ? undefined : checkProxy(proxy),
    namespace: context.text("namespace") ?? "default",
    context: contextName,
  };
}

/** The first entry of that name in any file: later files add names, they do not change what an earlier one said. */
function entry(sections: Section[], what: "context" | "cluster" | "user", name: string): Section {
  const all = sections.flatMap((section) => section.sections(`${what}s`));
  const found = all.find((each) => each.text("name") === name);
  const have = all.flatMap((each) => each.text("name") ?? []);
  if (!found) throw errors.KUBECONFIG_NO_SUCH_ENTRY(what, name, [...new Set(have)]);
  const body = found.section(what);
  if (!body) throw found.malformed(undefined, `${what} "${name}" is empty`);
  return body;
}

function serverOf(cluster: Section, name: string): string {
  const server = cluster.text("server");
  if (server === undefined) throw cluster.malformed(undefined, `cluster "${name}" has no server`);
  // kubectl takes HOST:PORT too, as plain HTTP.
  const url = server.includes("://") ? server : `http://${server}`;
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw cluster.malformed("server", `"${server}" is not an https:// or http:// address`);
  }
  return url.replace(/\/$/, "");
}

function tlsOf(cluster: Section, user: Section | undefined): Connection["tls"] {
  const insecure = cluster.flag("insecure-skip-tls-verify");
  const ca = cluster.content("certificate-authority");
  if (insecure && ca !== undefined) {
    const why = "insecure-skip-tls-verify and a certificate authority exclude each other";
    throw cluster.malformed("insecure-skip-tls-verify", why);
  }
  const certificate = user?.content("client-certificate");
  const key = user?.content("client-key");
  if (user && (certificate === undefined) !== (key === undefined)) {
    throw user.malformed(undefined, "client-certificate and client-key must come together");
  }
  return { insecure, ca, certificate, key, serverName: cluster.text("tls-server-name") };
}

function authOf(user: Section, name: string, cluster: Section, env: ClusterEnv): Auth {
  const tokenFile = user.path("tokenFile");
  if (tokenFile !== undefined) return { kind: "tokenFile", path: tokenFile };
  const token = user.text("token");
  if (token !== undefined) return { kind: "token", token };
  const username = user.text("username");
  if (username !== undefined) return { kind: "basic", username, password: user.text("password") ?? "" };
  const exec = user.section("exec");
  if (exec !== undefined) return { kind: "exec", plugin: execPluginOf(exec, cluster, env) };
  const provider = user.section("auth-provider");
  if (provider === undefined) return { kind: "none" };
  if (provider.text("name") === "oidc") return { kind: "oidc", provider: oidcProviderOf(provider, name, env) };
  throw errors.KUBECONFIG_AUTH_PROVIDER(name, provider.text("name") ?? "");
}

function impersonationOf(user: Section): Impersonation | undefined {
  const as = user.text("as");
  if (as === undefined) return undefined;
  const extra = user.section("as-user-extra");
  const values = (extra?.fields() ?? []).map((field) => [field, extra?.texts(field) ?? []]);
  return { user: as, uid: user.text("as-uid"), groups: user.texts("as-groups"), extra: Object.fromEntries(values) };
}

function first<T>(sections: Section[], read: (section: Section) => T | undefined): T | undefined {
  for (const section of sections) {
    const value = read(section);
    if (value !== undefined) return value;
  }
  return undefined;
}
