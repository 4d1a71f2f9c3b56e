import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority, issue } from "../../src/kit/x509.ts";
import { type EtcdAdmin, etcdAdmin } from "./etcd-admin.ts";

/** The distribution's own etcd, of one member or several, in a folder of its own on ports nobody has. */
export interface EtcdServer {
  endpoint: string;
  members: EtcdMember[];
  /** For our programs. */
  env: Record<string, string>;
  /** Flags for vendorctl. */
  flags: string[];
  /** A client certificate of another authority. */
  strangerFlags: string[];
  admin: EtcdAdmin;
  /** New certificates, of a new authority, in the same files. Members use them when they start again. */
  rotate(): void;
  stop(): Promise<void>;
}

export interface EtcdMember {
  endpoint: string;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** It lives, and answers nothing. */
  pause(): void;
  resume(): void;
  /** Loses its data. */
  clear(): void;
}

export interface EtcdOptions {
  tls?: boolean;
  members?: number;
  /** How large its database may get. */
  quotaBytes?: number;
  /** Its authentication is on, with a user who may use the service's keys and nothing else. */
  users?: boolean;
  /** Programs have that user, though its authentication is off so far. */
  user?: boolean;
  /** Runs it in a network namespace, at an address of that. */
  within?: { netns: string; address: string };
}

const PROGRAM = "etcd";
/** Sockets in its folder, for its administrator, wherever it runs. */
const ADMIN = "admin-";
export const USER = { name: "vendor", password: "correct horse" };

export const NO_ETCD = "needs etcd (Debian: etcd-server)";

export function hasEtcd(): boolean {
  return spawnSync(PROGRAM, ["--version"], { env: environment() }).status === 0;
}

/** etcd asks to be told on platforms its authors do not test. */
function environment(): NodeJS.ProcessEnv {
  const arch = { x64: "amd64" }[process.arch as string] ?? process.arch;
  return { ...process.env, ETCD_UNSUPPORTED_ARCH: arch === "amd64" ? "" : arch };
}

export async function startEtcd({
  tls = false,
  members: count = 1,
  quotaBytes,
  users = false,
  user = users,
  within,
}: EtcdOptions = {}): Promise<EtcdServer> {
  const folder = mkdtempSync(join(tmpdir(), "etcd-story-"));
  const scheme = tls ? "https" : "http";
  const address = within?.address ?? "127.0.0.1";
  const keys = tls ? writeKeys(folder, address) : undefined;
  const plans: { name: string; endpoint: string; peer: string }[] = [];
  const ports = await freePorts(2 * count);
  for (let at = 0; at < count; at++) {
    const [client, peer] = ports.slice(2 * at);
    plans.push({ name: `m${at}`, endpoint: `${scheme}://${address}:${client}`, peer: `http://127.0.0.1:${peer}` });
  }
  const cluster = plans.map(({ name, peer }) => `${name}=${peer}`).join(",");
  const members = plans.map(({ name, endpoint, peer }) => {
    const args = [
      ["--name", name],
      ["--data-dir", join(folder, name)],
      ["--listen-client-urls", `${endpoint},unix://${ADMIN}${name}:1`],
      ["--advertise-client-urls", endpoint],
      ["--listen-peer-urls", peer],
      ["--initial-advertise-peer-urls", peer],
      ["--initial-cluster", cluster],
      ...(quotaBytes === undefined ? [] : [["--quota-backend-bytes", String(quotaBytes)]]),
      ...(keys ? [["--cert-file", keys.serverCert, "--key-file", keys.serverKey]] : []),
      ...(keys ? [["--trusted-ca-file", keys.ca, "--client-cert-auth"]] : []),
    ].flat();
    const command = within ? ["nsenter", `--net=/run/netns/${within.netns}`, PROGRAM] : [PROGRAM];
    const admin = join(folder, `${ADMIN}${name}:1`);
    return member(endpoint, { folder, admin, data: join(folder, name) }, [...command, ...args]);
  });
  await Promise.all(members.map((one) => one.start()));
  const admin = etcdAdmin(join(folder, `${ADMIN}m0:1`));
  if (users) await admin.enableUsers(USER);
  const endpoints = plans.map(({ endpoint }) => endpoint).join(",");
  const store = ["--datastore", "etcd", "--etcd-endpoints", endpoints];
  const with_ = (cert: string, key: string) => [
    ...[...store, "--etcd-ca", keys!.ca],
    ...["--etcd-cert", cert, "--etcd-key", key],
  ];
  return {
    endpoint: plans[0]!.endpoint,
    members,
    env: {
      DATASTORE_TYPE: "etcd",
      ETCD_ENDPOINTS: endpoints,
      ...(keys && {
        ETCD_CA_CERT_FILE: keys.ca,
        ETCD_CERT_FILE: keys.clientCert,
        ETCD_KEY_FILE: keys.clientKey,
      }),
      ...(user && { ETCD_USERNAME: USER.name, ETCD_PASSWORD: USER.password }),
    },
    flags: keys ? with_(keys.clientCert, keys.clientKey) : store,
    strangerFlags: keys ? with_(keys.strangerCert, keys.strangerKey) : store,
    admin,
    rotate: () => void writeKeys(folder, address),
    async stop() {
      await Promise.all(members.map((one) => one.kill()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function member(
  endpoint: string,
  { folder, admin, data }: { folder: string; admin: string; data: string },
  [program = PROGRAM, ...args]: string[],
): EtcdMember {
  let child: ChildProcess | undefined;
  return {
    endpoint,
    async start() {
      // A killed one has left it.
      rmSync(admin, { force: true });
      child = spawn(program, args, { cwd: folder, env: environment(), stdio: ["ignore", "pipe", "pipe"] });
      await ready(child);
    },
    async kill() {
      const dying = child;
      child = undefined;
      if (!dying || dying.exitCode !== null) return;
      const ended = new Promise((resolve) => dying.once("exit", resolve));
      dying.kill("SIGKILL");
      await ended;
    },
    pause: () => void child?.kill("SIGSTOP"),
    resume: () => void child?.kill("SIGCONT"),
    clear: () => rmSync(data, { recursive: true }),
  };
}

function writeKeys(folder: string, address: string) {
  const now = new Date();
  const [authority, other] = ["etcd-ca", "other-ca"].map((commonName) => createAuthority({ commonName }, now, 1));
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const pair = (name: string, usage: "server" | "client", by = authority!) => {
    const names = usage === "server" ? [address] : [];
    const { certificate, key } = issue(by, { subject: { commonName: name }, usage, names, notBefore: now, days: 1 });
    return [file(`${name}.crt`, certificate), file(`${name}.key`, key)] as const;
  };
  const [serverCert, serverKey] = pair("server", "server");
  const [clientCert, clientKey] = pair("client", "client");
  const [strangerCert, strangerKey] = pair("stranger", "client", other);
  return {
    ca: file("ca.crt", authority!.certificate),
    serverCert,
    serverKey,
    clientCert,
    clientKey,
    strangerCert,
    strangerKey,
  };
}

function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (chunk: Buffer) => {
      said += chunk.toString();
      if (/ready to serve client requests|serving (insecure )?client requests/i.test(said)) resolve();
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`etcd ended with ${code}: ${said.slice(-2000)}`)));
  });
}

/** All are held until the last is known: one that is free again may be given a second time. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
