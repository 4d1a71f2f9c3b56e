import { afterEach, describe, expect, it } from "vitest";
import { PersistentProbe, probeOnce } from "./probe-client.ts";
import { type ProbeServer, serveProbe } from "./probe-server.ts";

const servers: ProbeServer[] = [];
const serve = async (ports: Parameters<typeof serveProbe>[0]) => {
  const server = await serveProbe(ports, "pod-a");
  servers.push(server);
  return server;
};
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

describe("a probe tells whether a port is reached, and whom the other end saw", () => {
  it.each(["tcp", "udp"] as const)("over %s: the name of who answers, and our own address", async (protocol) => {
    const server = await serve({ tcp: [0], udp: [0] });
    const port = server.ports[protocol][0] as number;
    const result = await probeOnce({ host: "127.0.0.1", port, protocol }, 2000);
    expect(result).toMatchObject({
      ok: true,
      to: `127.0.0.1:${port}`,
      answer: { host: "pod-a", client: "127.0.0.1", port },
    });
  });

  it("says what the kernel said when nobody listens", async () => {
    const server = await serve({ tcp: [0], udp: [] });
    const port = server.ports.tcp[0] as number;
    await server.close();
    servers.splice(0);
    expect(await probeOnce({ host: "127.0.0.1", port, protocol: "tcp" }, 2000)).toMatchObject({
      ok: false,
      error: "ECONNREFUSED",
    });
  });

  it("gives up on silence after the time it was given", async () => {
    const server = await serve({ tcp: [], udp: [] });
    const { ports } = server;
    expect(ports).toEqual({ tcp: [], udp: [] });
    const result = await probeOnce({ host: "127.0.0.1", port: 9, protocol: "udp" }, 50);
    expect(result.ok).toBe(false);
  });

  it("keeps a connection and notices when it breaks", async () => {
    const server = await serve({ tcp: [0], udp: [] });
    const kept = new PersistentProbe({ host: "127.0.0.1", port: server.ports.tcp[0] as number, protocol: "tcp" }, 1000);
    const first = await kept.request();
    const second = await kept.request();
    expect([first.ok, first.answer?.host, second.ok, second.answer]).toEqual([true, "pod-a", true, undefined]);
    await server.close();
    servers.splice(0);
    expect(await kept.request()).toMatchObject({ ok: false });
    kept.close();
  });

  it("refuses a port that is taken, with a code", async () => {
    const server = await serve({ tcp: [0], udp: [] });
    await expect(serveProbe({ tcp: server.ports.tcp, udp: [] })).rejects.toMatchObject({ code: "PROBE_CANNOT_LISTEN" });
  });
});
