import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiServer, createApiServer } from "../../src/apiserver/server.ts";
import { createClusterKeys } from "../../src/local/certificates.ts";
import { kubeconfigFor } from "../../src/local/kubeconfig-file.ts";
import { type Ran, vendorctl } from "../support/vendorctl.ts";

/** What goes wrong before anything is done: one sentence, a code, the fix, an exit status, and never a stack trace. */

const tool = vendorctl();
const now = new Date();
const keys = createClusterKeys(["127.0.0.1"], now);
const strangers = createClusterKeys(["127.0.0.1"], now);
let server: ApiServer;
let busy: Server;
let url = "";
const file = (name: string) => join(tool.home, name);

beforeAll(async () => {
  server = await createApiServer({ kinds: [] });
  url = (
    await server.listen({
      host: "127.0.0.1",
      port: 0,
      tls: { server: keys.server, clientAuthority: keys.authority.certificate },
    })
  ).url;
  busy = createServer().listen(0, "127.0.0.1");
  writeFileSync(file("good"), kubeconfigFor("c", url, keys));
  writeFileSync(file("malformed"), "clusters: [\n");
  writeFileSync(file("tab"), "apiVersion: v1\nclusters:\n\t- name: c\n");
  writeFileSync(file("stranger"), kubeconfigFor("c", url, strangers));
  writeFileSync(file("closed"), kubeconfigFor("c", "https://127.0.0.1:1", keys));
  writeFileSync(file("a-file"), "");
  mkdirSync(file("private"));
  chmodSync(file("private"), 0o000);
});
afterAll(async () => {
  await server.close();
  busy.close();
  chmodSync(file("private"), 0o700);
  await tool.clear();
});

const busyPort = () => String((busy.address() as AddressInfo).port);
const ask = (kubeconfig: string) => ["version", "--kubeconfig", file(kubeconfig)];
const up = (...args: string[]) => ["cluster", "up", "--paper", "--detach", ...args];

const HIDDEN = "another user cannot read this checkout, so nobody can run the tool as them";

describe("bad input", () => {
  const table: [what: string, args: () => string[], code: string, status: number][] = [
    ["a kubeconfig that is not there", () => ask("absent"), "KUBECONFIG_MISSING", 78],
    ["a malformed kubeconfig", () => ask("malformed"), "KUBECONFIG_MALFORMED", 78],
    ["YAML with a tab", () => ask("tab"), "KUBECONFIG_MALFORMED", 78],
    ["a context that is not there", () => [...ask("good"), "--context", "nobody"], "KUBECONFIG_NO_SUCH_ENTRY", 78],
    ["a server nobody listens at", () => ask("closed"), "CLUSTER_UNREACHABLE", 69],
    ["a certificate that does not verify", () => ask("stranger"), "CLUSTER_CERT_UNTRUSTED", 69],
    ["a port in use", () => up("--name", "p", "--port", busyPort()), "PORT_IN_USE", 1],
    [
      "a data directory that is a file",
      () => up("--name", "f", "--data-dir", file("a-file")),
      "STORE_NOT_A_DIRECTORY",
      1,
    ],
    ["a kind nobody knows", () => up("--kind", "gke"), "BAD_VALUE", 64],
    ["a name no cluster can have", () => up("--name", "Not Good"), "BAD_VALUE", 64],
    ["a number of nodes no cluster can have", () => up("--nodes", "0"), "BAD_VALUE", 64],
    ["a version older than any we know", () => up("--installed", "v3.1"), "INSTALLED_VERSION_TOO_OLD", 64],
    ["a method without a version", () => up("--method", "chart"), "USAGE", 64],
    [
      "a method the etcd datastore never had",
      () => up("--installed", "v3.20", "--method", "chart", "--datastore", "etcd"),
      "INSTALL_METHOD_NOT_ON_ETCD",
      64,
    ],
    [
      "a proxy this platform does not offer",
      () => up("--kind", "openshift", "--proxy", "ipvs"),
      "PROXY_NOT_OFFERED",
      64,
    ],
    ["a command nobody knows", () => ["instal"], "UNKNOWN_COMMAND", 64],
    ["a flag nobody knows", () => ["cluster", "up", "--node", "3"], "UNKNOWN_FLAG", 64],
    ["a code nobody knows", () => ["explain", "NOPE"], "UNKNOWN_CODE", 64],
  ];
  it.each(table)("%s", async (_what, args, code, status) => expectRefusal(await tool.run(...args()), code, status));

  it("no permission on the data directory", async (context) => {
    const other = vendorctl({ asNobody: true });
    context.skip((await other.run("version", "--client")).status !== 0, HIDDEN);
    const refused = await other.run(...up("--name", "n", "--data-dir", file("private/data")));
    expectRefusal(refused, "STORE_NO_PERMISSION", 1);
    await other.clear();
  });

  it("no permission where clusters keep their state", async (context) => {
    const other = vendorctl({ asNobody: true });
    context.skip((await other.run("version", "--client")).status !== 0, HIDDEN);
    chmodSync(other.home, 0o500);
    expectRefusal(await other.run(...up("--name", "n")), "STATE_NOT_WRITABLE", 1);
    chmodSync(other.home, 0o700);
    await other.clear();
  });

  it("leaves nothing behind", async () => {
    expect((await tool.run("cluster", "list")).out).toContain("no clusters");
  });
});

function expectRefusal(ran: Ran, code: string, status: number): void {
  expect(ran.status, ran.err).toBe(status);
  const said = ran.err.split("\n").filter((line) => line.startsWith("error:") || line.startsWith("  "));
  expect(said[0]).toMatch(new RegExp(`^error: .+ \\[${code}\\]$`));
  expect(said[1]).toMatch(/^ {2}fix: /);
  expect(said).toHaveLength(2);
}
