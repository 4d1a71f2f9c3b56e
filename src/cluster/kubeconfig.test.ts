import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { ClusterEnv } from "./config.ts";
import { type ConnectionFlags, loadConnection } from "./kubeconfig.ts";
import { proxyFromEnv } from "./proxy-env.ts";

const dir = mkdtempSync(join(tmpdir(), "kubeconfig-"));
afterAll(() => rmSync(dir, { recursive: true }));
let files = 0;

function write(text: string): string {
  const file = join(dir, `config-${++files}`);
  writeFileSync(file, text);
  return file;
}

const nowhere: ClusterEnv = {
  home: join(dir, "no-home"),
  serviceAccountDir: join(dir, "no-account"),
  all: { PATH: "/bin" },
  terminal: false,
};
const load = (file: string, flags: ConnectionFlags = {}) => loadConnection({ kubeconfig: file, ...flags }, nowhere);

/** A kubeconfig with one context; `cluster` and `user` are lines of those maps. */
function config(parts: { cluster?: string[]; user?: string[]; context?: string[] } = {}): string {
  const lines = (indent: string, given: string[] = []) => given.map((line) => `${indent}${line}\n`).join("");
  return `apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context:
    cluster: c
    user: u
${lines("    ", parts.context)}clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443/
${lines("    ", parts.cluster)}users:
- name: u
  user:
    as-groups: []
${lines("    ", parts.user)}`;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("a kubeconfig", () => {
  it("gives server, trust, identity and namespace of its current context", () => {
    const file = write(
      config({
        context: ["namespace: web"],
        cluster: [`certificate-authority-data: ${base64("CA")}`, "tls-server-name: kubernetes"],
        user: [`client-certificate-data: ${base64("CERT")}`, `client-key-data: ${base64("KEY")}`, "token: secret"],
      }),
    );
    expect(load(file)).toEqual({
      server: "https://10.0.0.1:6443",
      tls: { ca: "CA", certificate: "CERT", key: "KEY", serverName: "kubernetes", insecure: false },
      auth: { kind: "token", token: "secret" },
      namespace: "web",
      context: "here",
    });
  });

  it("takes files from where it is itself", () => {
    mkdirSync(join(dir, "pki"));
    writeFileSync(join(dir, "pki", "ca.pem"), "CA FILE");
    const file = write(config({ cluster: ["certificate-authority: pki/ca.pem"], user: ["tokenFile: pki/token"] }));
    expect(load(file).tls.ca).toBe("CA FILE");
    expect(load(file).auth).toEqual({ kind: "tokenFile", path: join(dir, "pki", "token") });
  });

  it("knows names and passwords, no verification, a proxy, and impersonation", () => {
    const file = write(
      config({
        cluster: ["insecure-skip-tls-verify: true", "proxy-url: http://proxy:3128"],
        user: ["username: u", "password: p", "as: jane", "as-uid: '7'", "as-user-extra:", "  scope: [a, b]"],
      }),
    );
    expect(load(file)).toMatchObject({
      tls: { insecure: true },
      proxy: "http://proxy:3128",
      auth: { kind: "basic", username: "u", password: "p" },
      impersonate: { user: "jane", uid: "7", groups: [], extra: { scope: ["a", "b"] } },
    });
    expect(load(file, { as: "joe", asGroups: ["dev"], namespace: "other" })).toMatchObject({
      namespace: "other",
      impersonate: { user: "joe", groups: ["dev"], extra: {} },
    });
  });

  it("knows credential plugins of both versions, and what they want to know of the cluster", () => {
    const exec = [
      "exec:",
      "  apiVersion: client.authentication.k8s.io/v1",
      "  command: ./bin/login",
      "  args: [get-token, --quiet]",
      "  env: [{name: REGION, value: north}]",
      "  interactiveMode: Never",
      "  provideClusterInfo: true",
      "  installHint: ask the platform team",
    ];
    const cluster = [
      `certificate-authority-data: ${base64("CA")}`,
      "extensions:",
      "- name: client.authentication.k8s.io/exec",
      "  extension: {audience: me}",
    ];
    expect(load(write(config({ user: exec, cluster }))).auth).toEqual({
      kind: "exec",
      plugin: {
        apiVersion: "client.authentication.k8s.io/v1",
        command: join(dir, "bin/login"),
        args: ["get-token", "--quiet"],
        env: { PATH: "/bin", REGION: "north" },
        interactiveMode: "Never",
        terminal: false,
        installHint: "ask the platform team",
        cluster: {
          server: "https://10.0.0.1:6443/",
          "certificate-authority-data": base64("CA"),
          config: { audience: "me" },
        },
      },
    });
    const beta = ["exec:", "  apiVersion: client.authentication.k8s.io/v1beta1", "  command: login"];
    expect(load(write(config({ user: beta }))).auth).toMatchObject({
      plugin: { command: "login", interactiveMode: "IfAvailable" },
    });
  });
});

describe("which kubeconfig", () => {
  const other =
    "current-context: there\ncontexts:\n- {name: there, context: {cluster: c}}\n- {name: here, context: {cluster: c}}\n";

  it("several in $KUBECONFIG are merged: the first to say something wins, missing ones are passed over", () => {
    const list = [join(dir, "missing"), write(other), write(config({ user: ["token: t"] }))].join(delimiter);
    const env = { ...nowhere, kubeconfig: list };
    expect(loadConnection({}, env)).toMatchObject({
      context: "there",
      server: "https://10.0.0.1:6443",
      auth: { kind: "none" },
    });
    expect(loadConnection({ context: "here" }, env).auth).toEqual({ kind: "none" });
  });

  it("~/.kube/config comes next, then the pod's own service account", () => {
    const home = join(dir, "home");
    mkdirSync(join(home, ".kube"), { recursive: true });
    writeFileSync(join(home, ".kube", "config"), config());
    expect(loadConnection({}, { ...nowhere, home }).context).toBe("here");

    const account = join(dir, "account");
    mkdirSync(account);
    for (const [name, text] of [
      ["token", "t"],
      ["ca.crt", "CA"],
      ["namespace", "vendor-system\n"],
    ] as const) {
      writeFileSync(join(account, name), text);
    }
    const pod = { ...nowhere, serviceAccountDir: account, serviceHost: "fd00::1", servicePort: "6443" };
    expect(loadConnection({}, pod)).toEqual({
      server: "https://[fd00::1]:6443",
      tls: { ca: "CA", insecure: false },
      auth: { kind: "tokenFile", path: join(account, "token") },
      namespace: "vendor-system",
    });
    const flag = () => loadConnection({ kubeconfig: join(dir, "missing") }, pod);
    expect(flag).toThrow(`there is no kubeconfig at ${join(dir, "missing")}`);
  });
});

describe("a kubeconfig that cannot be used", () => {
  const BAD: [what: string, text: string, code: string, sentence: string][] = [
    ["has a tab", "apiVersion: v1\nclusters:\n\t- name: c\n", "KUBECONFIG_MALFORMED", ":3 is not a kubeconfig: Tabs"],
    ["is no map", "- one\n- two\n", "KUBECONFIG_MALFORMED", ":1 is not a kubeconfig: a map is expected"],
    [
      "has a number for text",
      config({ user: ["token: 1234"] }),
      "KUBECONFIG_MALFORMED",
      ":17 is not a kubeconfig: token must",
    ],
    [
      "has no list of clusters",
      "current-context: a\ncontexts: {}\n",
      "KUBECONFIG_MALFORMED",
      ":2 is not a kubeconfig: contexts must be a list",
    ],
    ["names no context", "contexts: []\n", "KUBECONFIG_NO_CURRENT_CONTEXT", "names no current context"],
    ["is empty", "", "KUBECONFIG_NO_CURRENT_CONTEXT", "names no current context"],
    [
      "has no such cluster",
      "current-context: a\ncontexts: [{name: a, context: {cluster: x}}]\n",
      "KUBECONFIG_NO_SUCH_ENTRY",
      'no cluster "x"',
    ],
    [
      "has data that is not base64",
      config({ cluster: ["certificate-authority-data: '###'"] }),
      "KUBECONFIG_BAD_BASE64",
      ":13: certificate-authority-data is not base64",
    ],
    [
      "names a file that is not there",
      config({ user: ["client-key: gone.pem"] }),
      "KUBECONFIG_UNREADABLE",
      "gone.pem cannot be read: there is no such file",
    ],
    [
      "has a certificate without its key",
      config({ user: [`client-certificate-data: ${base64("C")}`] }),
      "KUBECONFIG_MALFORMED",
      "must come together",
    ],
    [
      "is strict and lax at once",
      config({ cluster: [`certificate-authority-data: ${base64("C")}`, "insecure-skip-tls-verify: true"] }),
      "KUBECONFIG_MALFORMED",
      ":14 is not a kubeconfig: insecure-skip-tls-verify and",
    ],
    [
      "has a server that is no address",
      config().replace("https://10.0.0.1:6443/", "ftp://x"),
      "KUBECONFIG_MALFORMED",
      ':12 is not a kubeconfig: "ftp://x"',
    ],
    [
      "has a removed auth-provider",
      config({ user: ["auth-provider: {name: gcp}"] }),
      "KUBECONFIG_AUTH_PROVIDER",
      'auth-provider "gcp"',
    ],
    [
      "has a plugin of an unknown version",
      config({ user: ["exec: {apiVersion: v9, command: x}"] }),
      "KUBECONFIG_MALFORMED",
      "exec.apiVersion must be",
    ],
    [
      "has a proxy we do not speak",
      config({ cluster: ["proxy-url: socks5://p:1080"] }),
      "CLUSTER_PROXY_UNSUPPORTED",
      "socks5://p:1080 is not an http",
    ],
  ];

  it.each(BAD)("because it %s: one sentence and a code", (_what, text, code, sentence) => {
    const file = write(text);
    const failure = caught(() => load(file));
    expect(failure).toMatchObject({ code, exitCode: 78, fix: expect.any(String) });
    expect(failure.message).toContain(sentence);
    expect(failure.message).not.toContain("\n");
  });

  it("because the context asked for is not in it: says which are", () => {
    const failure = caught(() => load(write(config()), { context: "prod" }));
    expect(failure.message).toBe('the kubeconfig has no context "prod", only here');
  });

  it("because it is a directory", () => {
    expect(caught(() => load(dir)).message).toContain("cannot be read: it is a directory");
  });
});

function caught(fn: () => unknown): Error {
  try {
    fn();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
}

describe("$HTTPS_PROXY", () => {
  const PROXY = "http://proxy:3128";
  it.each([
    ["https://api.example.com", "", PROXY],
    ["http://api.example.com", "", undefined],
    ["https://127.0.0.1:6443", "", undefined],
    ["https://localhost:6443", "", undefined],
    ["https://api.example.com", "example.com", undefined],
    ["https://api.example.com", ".example.com", undefined],
    ["https://badexample.com", "example.com", PROXY],
    ["https://api.example.com:6443", "api.example.com:443", PROXY],
    ["https://api.example.com:6443", "api.example.com:6443", undefined],
    ["https://10.96.0.1", "192.168.0.0/16, 10.96.0.0/12", undefined],
    ["https://[fd00::1]:6443", "fd00::/8", undefined],
    ["https://10.0.0.1", "*", undefined],
  ])("%s with $NO_PROXY %s goes through %s", (server, noProxy, expected) => {
    expect(proxyFromEnv(server, { httpsProxy: "proxy:3128", noProxy })).toBe(expected);
  });
});
