import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LabNode, type LabPod, type NodeLab, until } from "../agent/node-lab.ts";
import { attackLab, DATAPLANES, type Ear, onlyFrom, POLICIES, udp, whyNoAttacks, writeStatus } from "./attack-lab.ts";

/** A pod gets the address of one that is gone: nothing of the old connections may reach it, and nothing may keep new ones from it. */
describe.skipIf(whyNoAttacks !== undefined).each(DATAPLANES)(
  `reuse of addresses, $dataplane${whyNoAttacks ? ` (${whyNoAttacks})` : ""}`,
  ({ bpf }) => {
    let lab: NodeLab;
    let [one, two] = [] as unknown as [LabNode, LabNode];
    let client: LabPod;
    const ears: Ear[] = [];
    const listen = async (...args: Parameters<typeof udp>) => {
      const ear = await udp(...args);
      ears.push(ear);
      return ear;
    };
    beforeAll(async () => {
      lab = await attackLab({ bpf });
      [one, two] = lab.nodes as [LabNode, LabNode];
      await lab.client.create(POLICIES, onlyFrom("victim", "victim", { app: "client" }));
      client = await lab.addPod("client", two, { app: "client" });
      await writeStatus(lab, client);
    });
    afterAll(async () => {
      for (const ear of ears) ear.close();
      await lab?.close();
    });

    /** Sends until it is so. */
    const sendUntil = async (send: () => void, is: () => boolean, what: string) =>
      await until(
        () => {
          send();
          return is();
        },
        () => what,
      );

    it("the accomplice of a pod that is gone does not reach the pod that has its address now", async () => {
      const accomplice = await listen(lab.outside, 5555);
      const gone = await lab.addPod("gone", one);
      const hole = await udp(gone, 53);
      const { v4 } = lab.outside.addresses;
      await sendUntil(
        () => hole.send("hello", v4, 5555),
        () => accomplice.heard.length > 0,
        "the accomplice heard nothing",
      );
      const { address, port } = accomplice.heard[0]!.from;
      await sendUntil(
        () => accomplice.send("answer", address, port),
        () => hole.heard.length > 0,
        "the answer did not come back",
      );
      hole.close();
      await lab.removePod(gone);
      const taken = { "cni.vendor.io/ipAddrs": JSON.stringify(gone.addresses) };
      const heir = await lab.addPod("heir", one, { app: "victim" }, taken);
      await writeStatus(lab, heir);
      expect(heir.addresses).toEqual(gone.addresses);
      const ear = await listen(heir, 53);
      const marker = await listen(client, 4444);
      // Each round a datagram of the accomplice goes first: when the client's is heard, the other one was dropped.
      let rounds = 0;
      await sendUntil(
        () => {
          accomplice.send("inherited", address, port);
          marker.send("marker", heir.addresses[0]!, 53);
        },
        () => ear.heard.length > 0 && ++rounds > 10,
        "the client did not reach the heir",
      );
      expect(ear.heard.filter(({ text }) => text !== "marker")).toEqual([]);
    });

    it.each(["the same node", "another node"])(
      "a client on %s goes on with the pod that has the address now",
      async (where) => {
        const near = where === "the same node";
        const from = near ? await lab.addPod("near", one) : client;
        const socket = await listen(from, 6000);
        const first = await lab.addPod(`first-${near}`, one);
        const old = await udp(first, 9000, "first");
        const ask = () => socket.send("ask", first.addresses[0]!, 9000);
        await sendUntil(ask, () => socket.heard.some(({ text }) => text === "first"), "the first does not answer");
        old.close();
        await lab.removePod(first);
        const taken = { "cni.vendor.io/ipAddrs": JSON.stringify(first.addresses) };
        const second = await lab.addPod(`second-${near}`, one, {}, taken);
        expect(second.addresses).toEqual(first.addresses);
        await listen(second, 9000, "second");
        await sendUntil(ask, () => socket.heard.some(({ text }) => text === "second"), "the second does not answer");
      },
    );
  },
);
