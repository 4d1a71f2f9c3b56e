import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { vendorctl } from "../../testing/fake-context.ts";

/** The path of a kubeconfig for a server that answers as told. */
async function clusterThat(answers: RequestListener): Promise<string> {
  const server = createServer(answers).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  return kubeconfigFor(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

function kubeconfigFor(server: string): string {
  const file = join(mkdtempSync(join(tmpdir(), "vendorctl-")), "kubeconfig");
  const config = {
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "here", user: "me" } }],
    clusters: [{ name: "here", cluster: { server } }],
    users: [{ name: "me", user: {} }],
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

it("tells the server's version and the service's beside its own", async () => {
  const seen: (string | undefined)[] = [];
  const file = await clusterThat((request, response) => {
    seen.push(request.url, request.headers["user-agent"], request.headers["impersonate-user"] as string);
    if (request.url !== "/version") response.writeHead(404);
    response.end('{"major":"1","minor":"31","gitVersion":"v1.31.0"}');
  });
  const { exit, out } = await vendorctl(["version", "--kubeconfig", file, "--as", "jane"]);
  expect({ exit, out }).toEqual({
    exit: 0,
    out: expect.stringMatching(/\nservice +not installed\nAPI server +v1\.31\.0\n$/),
  });
  expect(seen.slice(0, 3)).toEqual(["/version", expect.stringMatching(/^vendorctl\/v\d/), "jane"]);
});

it.each([
  ["v3.31.0", 0, ""],
  ["3.31.9", 0, ""],
  ["v3.27.5", 0, "next: vendorctl check --for upgrade && vendorctl upgrade\n"],
  ["v3.32.0", 3, "fix: use vendorctl v3.32"],
])("beside a cluster of %s exits with %i", async (vendorVersion, status, fix) => {
  const file = await clusterThat((request, response) => {
    const information = { kind: "ClusterInformation", metadata: { name: "default" }, spec: { vendorVersion } };
    response.end(JSON.stringify(request.url === "/version" ? { gitVersion: "v1.31.0" } : information));
  });
  const { exit, err } = await vendorctl(["version", "--kubeconfig", file]);
  expect({ exit, err }).toEqual({ exit: status, err: expect.stringContaining(fix) });
});

it("says that the server cannot be reached, and exits with 69", async () => {
  const { exit, err } = await vendorctl(["version", "--kubeconfig", kubeconfigFor("http://127.0.0.1:1")]);
  expect(exit).toBe(69);
  expect(err).toMatch(
    /^error: cannot reach the API server http:\/\/127\.0\.0\.1:1: .+ \[CLUSTER_UNREACHABLE\]\n {2}fix: /,
  );
});

it("says that the server is something else", async () => {
  const file = await clusterThat((_request, response) => response.end("<html>hello</html>"));
  const { exit, err } = await vendorctl(["version", "--kubeconfig", file]);
  expect({ exit, err }).toEqual({ exit: 69, err: expect.stringContaining("[CLUSTER_BAD_ANSWER]") });
});

it("says that the credentials are not accepted", async () => {
  const file = await clusterThat((_request, response) => response.writeHead(401).end("{}"));
  const { exit, err } = await vendorctl(["version", "--kubeconfig", file]);
  expect({ exit, err }).toEqual({ exit: 77, err: expect.stringContaining("[CLUSTER_UNAUTHORIZED]") });
});

it("waits no longer than --timeout", async () => {
  const file = await clusterThat(() => {});
  const { exit, err } = await vendorctl(["version", "--kubeconfig", file, "--timeout=100ms"]);
  expect({ exit, err }).toEqual({ exit: 5, err: expect.stringContaining("not finished after 0.1s [TIMED_OUT]") });
});

it("says that a file is missing, malformed or has no such context", async () => {
  const file = kubeconfigFor("http://127.0.0.1:1");
  expect((await vendorctl(["version", "--kubeconfig", `${file}.no`])).err).toContain("[KUBECONFIG_MISSING]");
  expect((await vendorctl(["version", "--kubeconfig", file, "--context", "x"])).err).toContain(
    "[KUBECONFIG_NO_SUCH_ENTRY]",
  );
  writeFileSync(file, "contexts:\n\t- name: a");
  expect((await vendorctl(["version", "--kubeconfig", file])).err).toContain("[KUBECONFIG_MALFORMED]");
});

it("refuses a group without a user to act as", async () => {
  const { exit, err } = await vendorctl(["version", "--as-group", "admins"]);
  expect({ exit, err }).toEqual({
    exit: 64,
    err: expect.stringContaining("--as-group needs --as [USAGE]"),
  });
});
