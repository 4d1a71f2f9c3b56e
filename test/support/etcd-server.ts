import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority, issue } from "../../src/kit/x509.ts";

/** The distribution's own etcd, in a folder of its own on ports nobody has. */
export interface EtcdServer {
  endpoint: string;
  /** Flags for vendorctl. */
  flags: string[];
  /** A client certificate of another authority. */
  strangerFlags: string[];
  stop(): Promise<void>;
}

const PROGRAM = "etcd";

export const NO_ETCD = "needs etcd (Debian: etcd-server)";

export function hasEtcd(): boolean {
  return spawnSync(PROGRAM, ["--version"], { env: environment() }).status === 0;
}

/** etcd asks to be told on platforms its authors do not test. */
function environment(): NodeJS.ProcessEnv {
  const arch = { x64: "amd64" }[process.arch as string] ?? process.arch;
  return { ...process.env, ETCD_UNSUPPORTED_ARCH: arch === "amd64" ? "" : arch };
}

export async function startEtcd({ tls = false } = {}): Promise<EtcdServer> {
  const folder = mkdtempSync(join(tmpdir(), "etcd-story-"));
  const [client, peer] = [await freePort(), await freePort()];
  const scheme = tls ? "https" : "http";
  const endpoint = `${scheme}://127.0.0.1:${client}`;
  const keys = tls ? writeKeys(folder) : undefined;
  const args = [
    ["--data-dir", join(folder, "data")],
    ["--listen-client-urls", endpoint],
    ["--advertise-client-urls", endpoint],
    ["--listen-peer-urls", `http://127.0.0.1:${peer}`],
    ["--initial-advertise-peer-urls", `http://127.0.0.1:${peer}`],
    ["--initial-cluster", `default=http://127.0.0.1:${peer}`],
    ...(keys
      ? [
          ["--cert-file", keys.serverCert],
          ["--key-file", keys.serverKey],
        ]
      : []),
    ...(keys ? [["--trusted-ca-file", keys.ca], ["--client-cert-auth"]] : []),
  ].flat();
  const child = spawn(PROGRAM, args, { cwd: folder, env: environment(), stdio: ["ignore", "pipe", "pipe"] });
  await ready(child);
  const store = ["--datastore", "etcd", "--etcd-endpoints", endpoint];
  const with_ = (cert: string, key: string) => [
    ...store,
    "--etcd-ca",
    keys!.ca,
    "--etcd-cert",
    cert,
    "--etcd-key",
    key,
  ];
  return {
    endpoint,
    flags: keys ? with_(keys.clientCert, keys.clientKey) : store,
    strangerFlags: keys ? with_(keys.strangerCert, keys.strangerKey) : store,
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function writeKeys(folder: string) {
  const now = new Date();
  const [authority, other] = ["etcd-ca", "other-ca"].map((commonName) => createAuthority({ commonName }, now, 1));
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const pair = (name: string, usage: "peer" | "client", by = authority!) => {
    const names = usage === "peer" ? ["127.0.0.1"] : [];
    const { certificate, key } = issue(by, { subject: { commonName: name }, usage, names, notBefore: now, days: 1 });
    return [file(`${name}.crt`, certificate), file(`${name}.key`, key)] as const;
  };
  // The gateway speaks to its own server with the server's certificate, which must then be good for both.
  const [serverCert, serverKey] = pair("server", "peer");
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

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
