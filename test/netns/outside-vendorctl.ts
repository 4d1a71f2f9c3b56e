import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { OUTSIDE } from "../../src/local/runtime/netns/places.ts";
import type { RealCluster } from "./real-cluster.ts";

/** vendorctl on a machine outside the cluster, which reaches both the API server and what is on that network. */
export interface OutsideVendorctl {
  run(...args: string[]): Promise<{ out: string; err: string }>;
  close(): void;
}

const exec = promisify(execFile);

/** Listens in a network namespace and passes everything on to a socket of the file system, which has no namespace. */
const FORWARDER = `
const net = require("node:net");
const [socket, port] = process.argv.slice(1);
net.createServer((one) => {
  const other = net.connect(socket);
  one.pipe(other).pipe(one);
  for (const [from, to] of [[one, other], [other, one]]) from.on("error", () => to.destroy());
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
`;

export async function outsideVendorctl(cluster: RealCluster): Promise<OutsideVendorctl> {
  const folder = mkdtempSync(join(tmpdir(), "outside-"));
  const file = join(folder, "kubeconfig");
  writeFileSync(file, cluster.kubeconfig);
  const { hostname, port } = new URL(cluster.url);
  const socket = join(folder, "api");
  const server = createServer((one) => {
    const other = connect(Number(port), hostname);
    one.pipe(other).pipe(one);
    one.on("error", () => other.destroy());
    other.on("error", () => one.destroy());
  });
  await new Promise<void>((done) => server.listen(socket, done));
  const within = ["nsenter", `--net=/run/netns/v-${cluster.name}.${OUTSIDE}`, process.execPath] as const;
  const [program, ...before] = within;
  const forwarder = spawn(program, [...before, "-e", FORWARDER, socket, port], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await ready(forwarder);
  const env = { ...process.env, VENDORCTL_HOME: folder };
  return {
    async run(...args) {
      const command = [...before, resolve("bin/vendorctl"), "--kubeconfig", file, ...args];
      const { stdout, stderr } = await exec(program, command, { env, maxBuffer: 64 * 1024 * 1024 });
      return { out: stdout, err: stderr };
    },
    close() {
      forwarder.kill();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function ready(child: ChildProcess): Promise<void> {
  return new Promise((done, fail) => {
    child.stdout?.once("data", () => done());
    child.once("exit", (code) => fail(new Error(`the forwarder ended with ${code}`)));
  });
}
