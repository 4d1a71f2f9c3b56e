import { createServer as createPlainServer } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createAuthority, issue } from "../../kit/x509.ts";
import { probeFromHere } from "./probe-from-here.ts";
import { type ProbeAnswer, type Prober, type Proof, proveAddress } from "./prove-address.ts";

const expected = { version: "v1.36.4" };

describe("an address, as far as it can be proved", () => {
  const prober = (answer: ProbeAnswer, addresses = ["10.0.0.1"]): Prober => ({
    resolve: async () => addresses,
    requestVersion: async () => answer,
  });
  it.each<[Proof["outcome"], Prober]>([
    ["proven", prober({ is: "version", version: "v1.36.4" })],
    ["proven", prober({ is: "certificate" })],
    ["unresolved", prober({ is: "version", version: "v1.36.4" }, [])],
    ["unreachable", prober({ is: "no answer", why: "connection refused" })],
    ["wrong certificate", prober({ is: "wrong certificate", why: "self-signed" })],
    ["another server", prober({ is: "version", version: "v1.30.0" })],
    ["another server", prober({ is: "something else", why: "it does not speak TLS" })],
  ])("%s", async (outcome, world) => {
    const proof = await proveAddress(world, { host: "api.demo.internal", port: "6443" }, expected);
    expect(proof.outcome).toBe(outcome);
    expect(proof.evidence).toContain("probed from this machine, not from the nodes");
  });
});

describe("probed for real", () => {
  const now = new Date();
  const authority = createAuthority({ commonName: "cluster" }, now, 1);
  const other = createAuthority({ commonName: "other" }, now, 1);
  const servers: { close(): unknown }[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  async function serve(by: typeof authority, names: string[], status = 200): Promise<string> {
    const pair = issue(by, { subject: { commonName: "api" }, usage: "server", names, notBefore: now, days: 1 });
    const server: Server = createServer({ cert: pair.certificate, key: pair.key }, (_request, response) =>
      response.writeHead(status).end(JSON.stringify({ gitVersion: expected.version })),
    );
    return await listen(server);
  }

  async function listen(server: Server | ReturnType<typeof createPlainServer>): Promise<string> {
    servers.push(server);
    server.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    return String((server.address() as AddressInfo).port);
  }

  const prove = (host: string, port: string) =>
    proveAddress(probeFromHere({ authority: authority.certificate, patienceMs: 2000 }), { host, port }, expected);

  it("is the API server, by its certificate and its version", async () => {
    expect((await prove("127.0.0.1", await serve(authority, ["127.0.0.1"]))).outcome).toBe("proven");
    expect((await prove("127.0.0.1", await serve(authority, ["127.0.0.1"], 401))).outcome).toBe("proven");
  });

  it("is not one whose certificate another authority signed, or that is for another name", async () => {
    expect((await prove("127.0.0.1", await serve(other, ["127.0.0.1"]))).outcome).toBe("wrong certificate");
    expect((await prove("127.0.0.1", await serve(authority, ["api.elsewhere"]))).outcome).toBe("wrong certificate");
  });

  it("is not what speaks no TLS, what nobody answers at, or a name without an address", async () => {
    const plain = await listen(createPlainServer((_request, response) => response.end("hello")));
    expect((await prove("127.0.0.1", plain)).outcome).toBe("another server");
    expect((await prove("127.0.0.1", "1")).outcome).toBe("unreachable");
    expect((await prove("api.nowhere.invalid", "6443")).outcome).toBe("unresolved");
  });
});
