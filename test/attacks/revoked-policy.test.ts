import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { realKernel } from "../../src/kernel/kernel.ts";
import { until, whyNoNodes } from "../agent/node-lab.ts";
import { type AttackLab, admit, attackLab, FAMILIES, type Member, PLANES } from "./packet-lab.ts";

const why = whyNoNodes();
/** Nothing arrives: for so long. A segment that is lost is sent again several times meanwhile. */
const SILENCE_MS = 1_000;
const PORT = 8080;
const PROBE_PORT = 8081;
const CLIENTS = [
  { from: "attacker", where: "same node" },
  { from: "far", where: "another node" },
] as const;
const ROWS = CLIENTS.flatMap((client) => FAMILIES.map((family) => ({ ...client, ...family })));
let names = 0;

/** A client was let in, and then no longer is: what it has open ends, whoever speaks. */
describe.skipIf(why !== undefined).each(PLANES)(
  `connections that policy denies now, $plane${why ? ` (${why})` : ""}`,
  ({ bpf }) => {
    let lab: AttackLab;
    beforeAll(async () => {
      lab = await attackLab(bpf);
      await lab.actors.victim.serve("server", PORT);
      await lab.actors.victim.serve("probes", PROBE_PORT);
      for (const { family, name } of FAMILIES) await lab.actors.victim.udp(`udp ${name}`, family, 9000 + family);
    });
    afterAll(() => lab?.close());
    beforeEach(() => letIn("attacker", "far", "near"));

    /** Returns when the policy is in force: a new connection of who is not let in is refused. */
    async function letIn(...from: Member[]): Promise<void> {
      await admit(lab.nodes.client, { pod: "victim", from });
      for (const member of ["attacker", "far"] as const) {
        const expected = from.includes(member);
        const name = `probe ${names++}`;
        const tries = async () => {
          const opened = await lab.actors[member].connect(name, lab.address("victim", 4), PROBE_PORT, 300);
          await lab.actors[member].close(name);
          return opened === expected;
        };
        await until(tries, () => `${member} is ${expected ? "not let in" : "still let in"}`);
      }
    }

    async function connected(from: Member, family: 4 | 6): Promise<string> {
      const { [from]: client, victim } = lab.actors;
      const name = `connection ${names++}`;
      expect(await client.connect(name, lab.address("victim", family), PORT)).toBe(true);
      await client.write(name, "hello");
      await until(
        async () => (await victim.received("server")).includes("hello"),
        () => "the server hears nothing",
      );
      await victim.write("server", "welcome");
      await until(
        async () => (await client.received(name)) === "welcome",
        () => "the client hears nothing",
      );
      return name;
    }

    /** Both ends speak, the server first and more often; what either got of it. */
    async function heardOf(speak: () => Promise<unknown>, read: () => Promise<string>): Promise<string> {
      const before = (await read()).length;
      const end = Date.now() + SILENCE_MS;
      while (Date.now() < end) {
        await speak();
        const after = await read();
        if (after.length > before) return after.slice(before);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      return "";
    }

    it.each(ROWS)("TCP ends when the server goes on pushing: $where, $name", async ({ from, family }) => {
      const { [from]: client, victim } = lab.actors;
      const name = await connected(from, family);
      await letIn("near");
      // Idle until now: the server is the first to speak.
      expect(
        await heardOf(
          () => victim.write("server", "push"),
          () => client.received(name),
        ),
      ).toBe("");
      const both = async () => {
        await victim.write("server", "push");
        await client.write(name, "into the server");
      };
      expect(await heardOf(both, () => victim.received("server"))).toBe("");
      expect(await heardOf(both, () => client.received(name))).toBe("");
      await client.close(name);
    });

    it.each(ROWS)("UDP ends when the server goes on sending: $where, $name", async ({ from, family, name }) => {
      const { [from]: client, victim } = lab.actors;
      const [socket, server] = [`udp ${names++}`, `udp ${name}`];
      const port = await client.udp(socket, family);
      const push = () => victim.send(server, lab.address(from, family), port, "push");
      const ask = () => client.send(socket, lab.address("victim", family), 9000 + family, `ask ${socket}`);
      const asked = async () => (await victim.heard(server)).filter((text) => text === `ask ${socket}`).join();
      expect(await heardOf(ask, asked)).not.toBe("");
      expect(await heardOf(push, async () => (await client.heard(socket)).join())).not.toBe("");
      await letIn("near");
      const both = async () => {
        await push();
        await ask();
      };
      expect(await heardOf(both, async () => (await client.heard(socket)).join())).toBe("");
      expect(await heardOf(both, asked)).toBe("");
    });

    // What programs forget is in revoked-entries.test.ts.
    if (!bpf)
      it("TCP that connection tracking forgot is not the server's to open", async () => {
        const { attacker, victim } = lab.actors;
        const name = await connected("attacker", 4);
        await letIn("near");
        const conntrack = realKernel().conntrack(lab.nodes.nodes[0]!.netns);
        const client = lab.address("attacker", 4);
        const both = async () => {
          // As after a reset that only connection tracking believes.
          for (const { original } of await conntrack.list()) {
            if (original.source === client && original.destinationPort === PORT) conntrack.delete(original);
          }
          await victim.write("server", "push");
          await attacker.write(name, "into the server");
        };
        expect(await heardOf(both, () => victim.received("server"))).toBe("");
        conntrack.close();
        await attacker.close(name);
      });

    it("goes on when the policy allows it again", async () => {
      const { attacker, victim } = lab.actors;
      const name = await connected("attacker", 4);
      await letIn("near");
      expect(
        await heardOf(
          () => attacker.write(name, "denied"),
          () => victim.received("server"),
        ),
      ).toBe("");
      const [socket, server] = [`udp ${names++}`, "udp IPv4"];
      await letIn("attacker", "far", "near");
      await attacker.udp(socket, 4);
      await attacker.send(socket, lab.address("victim", 4), 9004, "before");
      await letIn("near");
      await attacker.send(socket, lab.address("victim", 4), 9004, "denied");
      await letIn("attacker", "far", "near");
      await until(
        async () => {
          await attacker.send(socket, lab.address("victim", 4), 9004, "again");
          return (await victim.heard(server)).includes("again");
        },
        () => "a flow that is allowed again stays cut",
      );
      expect(await victim.heard(server)).not.toContain("denied");
      await attacker.close(name);
    });
  },
);
