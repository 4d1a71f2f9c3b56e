import { describe, expect, it } from "vitest";
import type { Transport } from "../api/transport.ts";
import { silentLog } from "../kit/log.ts";
import { type ApiAddress, apiServerAddresses } from "./api-server-hosts.ts";
import { errors } from "./errors.ts";
import { addressRoutes, failoverTransport } from "./failover-transport.ts";

const ENV = {
  ORCHESTRATOR_SERVICE_HOST: "api.old",
  ORCHESTRATOR_SERVICE_PORT: "6443",
  KUBERNETES_SERVICE_HOST: "10.96.0.1",
  KUBERNETES_SERVICE_PORT: "443",
};
const map = (host: string, port = "6443") => ({ ORCHESTRATOR_SERVICE_HOST: host, ORCHESTRATOR_SERVICE_PORT: port });

describe("where a pod finds the API server", () => {
  it.each([
    ["the variables of the container, where no map is mounted", undefined, ["api.old:6443", "10.96.0.1:443"]],
    ["the mounted map, which is newer", map("api.new\n"), ["api.new:6443", "10.96.0.1:443"]],
    ["the Service alone, when the map is gone", {}, ["10.96.0.1:443"]],
    ["the Service alone, when the map cannot be read", map("api.new", "http"), ["10.96.0.1:443"]],
  ])("%s", (_, mounted, found) => {
    expect(apiServerAddresses(ENV, mounted).map(({ host, port }) => `${host}:${port}`)).toEqual(found);
  });
});

describe("a program that follows the endpoint map", () => {
  const start = (mounted: { now: Record<string, string> }, up: Set<string>) => {
    const open = ({ host }: ApiAddress): Transport => ({
      request: async () => {
        if (!up.has(host)) throw errors.CLUSTER_UNREACHABLE(host, "refused");
        return { status: 200, headers: {}, text: async () => host, lines: async function* () {} };
      },
      close: () => {},
    });
    const transport = failoverTransport(() => addressRoutes(apiServerAddresses(ENV, mounted.now), open), silentLog);
    return async () => await (await transport.request({ method: "GET", path: "/version" })).text();
  };

  it("uses a new address with its next request, and the Service while it does not answer", async () => {
    const mounted = { now: map("api.old") };
    const up = new Set(["api.old", "10.96.0.1"]);
    const ask = start(mounted, up);
    expect(await ask()).toBe("api.old");
    mounted.now = map("api.wrong");
    expect(await ask()).toBe("10.96.0.1");
    mounted.now = map("api.new");
    up.add("api.new");
    expect(await ask()).toBe("api.new");
  });

  it("is answered again once a wrong map is corrected, though nothing serves the Service", async () => {
    const mounted = { now: map("api.wrong") };
    const ask = start(mounted, new Set(["api.new"]));
    await expect(ask()).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE" });
    mounted.now = map("api.new");
    expect(await ask()).toBe("api.new");
  });
});
