import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { collectFlows } from "../../src/agent/flows/flow-collector.ts";
import type { FlowBatch } from "../../src/api/protocol/flow.ts";
import { agentPort } from "../../src/flows/ingest/agent-port.ts";
import { type FlowPace, flowPace } from "../../src/flows/ingest/flow-pace.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { silentLog } from "../../src/kit/log.ts";
import { createAuthority, issue, type KeyPair } from "../../src/kit/x509.ts";
import { Counted } from "./counted.ts";

const NAME = "vendor-flow-logs.vendor-system.svc";

/** What vendor-flow-logs keeps, as far as counting twice goes; a new one after each restart. */
class Kept {
  readonly bytes = new Map<number, number>();
  last: number | undefined;
  repeats = 0;

  add({ interval, rows }: FlowBatch): void {
    if (this.last !== undefined && interval <= this.last) {
      this.repeats++;
      return;
    }
    this.last = interval;
    this.bytes.set(
      interval,
      rows.reduce((sum, row) => sum + row.bytes, 0),
    );
  }

  total(): number {
    return [...this.bytes.values()].reduce((sum, bytes) => sum + bytes, 0);
  }
}

describe("flows on their way from a node", () => {
  const authority = createAuthority({ commonName: "ours" }, new Date(Date.now() - 60_000), 1);
  const server = pairOf(authority, "vendor-flow-logs", "server");
  const client = pairOf(authority, "vendor-node", "client");
  let directory: string;
  let ends: (() => Promise<void> | void)[];

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "flows-"));
    ends = [];
  });
  afterEach(async () => {
    for (const end of ends.reverse()) await end();
    rmSync(directory, { recursive: true, force: true });
  });

  async function startServer(kept: Kept, port = 0, keep = (batch: FlowBatch) => kept.add(batch)) {
    const pace: FlowPace = flowPace();
    const stopWatching = pace.watch();
    const listening = agentPort({
      ...{ tls: { ...server, ca: authority.certificate }, agents: "vendor-node", pace, log: silentLog },
      ...{ instance: `${Math.random()}`, lastOf: () => kept.last, keep: async (batch) => keep(batch) },
    });
    await new Promise<void>((resolve) => listening.listen(port, "127.0.0.1", resolve));
    const stop = async () => {
      stopWatching();
      const closed = new Promise<void>((resolve) => listening.close(() => resolve()));
      listening.closeAllConnections();
      await closed;
    };
    return { port: (listening.address() as AddressInfo).port, stop, pace };
  }

  function startAgent(counted: Counted, port: number, pair: KeyPair = client) {
    const stopping = new AbortController();
    const flows = counted.accounting();
    const collector = collectFlows({
      ...{ node: "node-1", boot: "boot", directory, clock: systemClock, log: silentLog, signal: stopping.signal },
      known: Promise.resolve(),
      accounting: () => ({ dataplane: "BPF", flows }),
      target: () => ({ url: `https://127.0.0.1:${port}`, name: NAME, tls: { ...pair, ca: authority.certificate } }),
      naming: async () => ({
        model: { policies: new Map(), profiles: new Map(), endpoints: new Map() },
        ends: { of: (address) => ({ type: "Outside", name: address, namespace: "" }), close: () => {} },
        isHere: () => true,
        pendingOf: () => undefined,
      }),
    });
    const kill = async () => {
      stopping.abort();
      await collector.done;
    };
    ends.push(kill);
    return { collector, kill };
  }

  it("arrive once, while agents and servers come and go at any moment", async () => {
    const counted = new Counted();
    const kept = new Kept();
    let { port, stop } = await startServer(kept);
    let agent = startAgent(counted, port);
    await expect.poll(() => counted.current).toBeDefined();
    const traffic = setInterval(() => counted.count(1 + Math.floor(Math.random() * 1_000)), 1);
    ends.push(() => clearInterval(traffic));
    for (let round = 0; round < 8; round++) {
      const before = kept.last ?? 0;
      await expect.poll(() => (kept.last ?? 0) > before).toBe(true);
      if (round % 2 === 0) {
        // The server's memory outlives it here, as its disk does.
        await stop();
        ({ stop } = await startServer(kept, port));
      } else {
        await agent.kill();
        agent = startAgent(counted, port);
      }
    }
    clearInterval(traffic);
    await expect.poll(() => kept.total()).toBe(counted.bytes);
    await stop();
  });

  it("go on at their pace after a switch of the data plane that kept them waiting", async () => {
    const [before, after] = [new Counted(), new Counted()];
    const kept = new Kept();
    const { port, stop } = await startServer(kept);
    const { collector } = startAgent(before, port);
    await expect.poll(() => before.current).toBeDefined();
    const other = after.accounting();
    await collector.entering("Nftables", other);
    // It is given up: the turn that waited for it meanwhile has taken seconds, and those after it are not to be late.
    await collector.left("Nftables", other);
    for (const bytes of [500, 700]) {
      before.count(bytes);
      await expect.poll(() => kept.total(), { timeout: 60_000 }).toBe(before.bytes);
    }
    await stop();
  });

  it("fill a server again that has forgotten everything", async () => {
    const counted = new Counted();
    const first = new Kept();
    let { port, stop } = await startServer(first);
    startAgent(counted, port);
    await expect.poll(() => counted.current).toBeDefined();
    counted.count(1_000);
    await expect.poll(() => first.total()).toBe(1_000);
    await stop();
    counted.count(200);
    const second = new Kept();
    ({ port, stop } = await startServer(second, port));
    await expect.poll(() => second.total()).toBe(1_200);
    await stop();
  });

  it("go on behind those of a life of the node whose clock was ahead", async () => {
    const counted = new Counted();
    const kept = new Kept();
    const ahead = Math.floor(Date.now() / 1_000) + 1_000_000;
    kept.last = ahead;
    const { port, stop } = await startServer(kept);
    startAgent(counted, port);
    await expect.poll(() => counted.current ?? 0).toBeGreaterThan(ahead);
    counted.count(50);
    await expect.poll(() => kept.total()).toBe(50);
    await stop();
  });

  it("wait on the node while a server does not keep them, and are not sent as others", async () => {
    const counted = new Counted();
    const kept = new Kept();
    let refuses = true;
    const { port, stop } = await startServer(kept, 0, (batch) => {
      if (refuses) throw new Error("the disk is full");
      kept.add(batch);
    });
    const { collector } = startAgent(counted, port);
    await expect.poll(() => counted.current).toBeDefined();
    counted.count(77);
    await expect.poll(() => collector.state().failure ?? "").toContain("503");
    refuses = false;
    await expect.poll(() => kept.total()).toBe(77);
    await stop();
  });

  it("are taken from agents alone: a foreign certificate ends the handshake, another of ours gets one sentence", async () => {
    const counted = new Counted();
    const kept = new Kept();
    const { port, stop } = await startServer(kept);
    const stranger = createAuthority({ commonName: "theirs" }, new Date(Date.now() - 60_000), 1);
    const foreign = startAgent(counted, port, pairOf(stranger, "vendor-node", "client"));
    await expect.poll(() => foreign.collector.state().failure).toBeDefined();
    await foreign.kill();
    const other = startAgent(counted, port, pairOf(authority, "vendor-flow-ui", "client"));
    await expect
      .poll(() => other.collector.state().failure ?? "")
      .toContain("the certificate is vendor-flow-ui's, and flows are sent by vendor-node");
    expect(kept.last).toBeUndefined();
    await stop();
  });
});

function pairOf(authority: KeyPair, commonName: string, usage: "server" | "client"): KeyPair {
  return issue(authority, {
    ...{ subject: { commonName }, usage, names: usage === "server" ? [NAME] : [] },
    ...{ notBefore: new Date(Date.now() - 60_000), days: 1 },
  });
}
