import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { ApiResponse, Transport } from "../api/transport.ts";
import { errors } from "../cluster/errors.ts";
import { failoverTransport } from "../cluster/failover-transport.ts";
import { silentLog } from "../kit/log.ts";
import { apiRoutes, saveAddresses } from "./api-failover.ts";

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** An API server behind its service's address and behind its own; `up` says which of them lead to it. */
function world() {
  const directory = mkdtempSync(join(tmpdir(), "api-failover-"));
  directories.push(directory);
  const file = join(directory, "addresses.json");
  const up = new Set(["usual"]);
  const asked: string[] = [];
  const way = (name: string): Transport => ({
    request: async () => {
      asked.push(name);
      if (!up.has(name)) throw errors.CLUSTER_UNREACHABLE(name, "refused");
      return { status: 200, headers: {}, text: async () => name, lines: async function* () {} } satisfies ApiResponse;
    },
    close: () => {},
  });
  const start = () =>
    failoverTransport(() => apiRoutes({ usual: () => way("usual"), at: ({ host }) => way(host), file }), silentLog);
  const ask = async (transport: Transport, method: "GET" | "PATCH" = "GET") =>
    await (await transport.request({ method, path: "/version" })).text();
  return { file, up, asked, start, ask };
}

describe("reaching the API server without its service", () => {
  it("an agent that starts while the service leads nowhere goes by the addresses it kept", async () => {
    const { file, up, start, ask } = world();
    saveAddresses(file, [{ host: "10.0.0.7", port: 6443 }]);
    up.delete("usual");
    up.add("10.0.0.7");
    const transport = start();
    expect(await ask(transport)).toBe("10.0.0.7");
    expect(await ask(transport)).toBe("10.0.0.7");
  });

  it("so does one that learnt them in this life, and it comes back when they lead nowhere", async () => {
    const { file, up, start, ask } = world();
    const transport = start();
    expect(await ask(transport)).toBe("usual");
    saveAddresses(file, [{ host: "10.0.0.7", port: 6443 }]);
    up.delete("usual");
    up.add("10.0.0.7");
    expect(await ask(transport)).toBe("10.0.0.7");
    up.delete("10.0.0.7");
    up.add("usual");
    expect(await ask(transport)).toBe("usual");
  });

  it("what changes something is not sent twice", async () => {
    const { file, up, asked, start, ask } = world();
    saveAddresses(file, [{ host: "10.0.0.7", port: 6443 }]);
    up.delete("usual");
    up.add("10.0.0.7");
    const transport = start();
    await expect(ask(transport, "PATCH")).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE" });
    expect(asked).toEqual(["usual"]);
    expect(await ask(transport, "PATCH")).toBe("10.0.0.7");
  });
});
