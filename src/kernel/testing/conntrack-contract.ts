import { describe, expect, it } from "vitest";
import type { ConntrackTuple } from "../conntrack/conntrack-port.ts";
import type { Corner } from "./contract.ts";

const TO_SERVICE: ConntrackTuple = {
  protocol: 6,
  source: "10.9.0.5",
  destination: "10.96.0.10",
  sourcePort: 4000,
  destinationPort: 80,
};

export function conntrackContract(corner: () => Corner): void {
  describe("connection tracking", () => {
    it("takes over a flow with its translation, as if it had seen it begin", async () => {
      const conntrack = corner().kernel.conntrack(corner().here);
      conntrack.insert({
        original: TO_SERVICE,
        destinationNat: { address: "10.9.0.2", port: 8080 },
        sourceNat: { address: "10.9.0.1", port: 4001 },
        mark: 7,
        timeout: 120,
      });
      const reply = {
        protocol: 6,
        source: "10.9.0.2",
        sourcePort: 8080,
        destination: "10.9.0.1",
        destinationPort: 4001,
      };
      const [flow, ...others] = await conntrack.list();
      expect(others).toEqual([]);
      expect(flow).toMatchObject({ original: TO_SERVICE, reply, mark: 7, tcpState: "established" });
      expect(flow).toMatchObject({ sourceNat: true, destinationNat: true, seenReply: true, assured: true });
      expect(flow!.timeout).toBeGreaterThan(110);
      expect(() => conntrack.insert({ original: TO_SERVICE, timeout: 1 })).toThrow(
        expect.objectContaining({ errno: "EEXIST" }),
      );
      conntrack.close();
    });

    it("finds, changes and forgets one flow among others", async () => {
      const conntrack = corner().kernel.conntrack(corner().here);
      const other: ConntrackTuple = { ...TO_SERVICE, protocol: 17, source: "fd00::5", destination: "fd00::6" };
      conntrack.insert({ original: TO_SERVICE, timeout: 100, mark: 1 });
      conntrack.insert({ original: other, timeout: 100, mark: 2, destinationNat: { address: "fd00::9", port: 53 } });
      expect(conntrack.update(TO_SERVICE, { mark: 3, timeout: 50 })).toBe(true);
      expect(conntrack.find(TO_SERVICE)).toMatchObject({ mark: 3, sourceNat: false, destinationNat: false });
      expect(conntrack.find(TO_SERVICE)!.timeout).toBeLessThanOrEqual(50);
      expect((await conntrack.list({ mark: 3 })).map(({ original }) => original)).toEqual([TO_SERVICE]);
      expect((await conntrack.list({ family: 6 })).map(({ original }) => original)).toEqual([other]);
      expect(conntrack.delete(TO_SERVICE)).toBe(true);
      expect(conntrack.delete(TO_SERVICE)).toBe(false);
      expect(conntrack.find(TO_SERVICE)).toBeUndefined();
      expect(conntrack.update(TO_SERVICE, { mark: 1 })).toBe(false);
      conntrack.close();
    });

    it("takes a flow with the very ports it has, or not at all", () => {
      const conntrack = corner().kernel.conntrack(corner().here);
      const straight = { ...TO_SERVICE, destination: "10.9.0.2", destinationPort: 8080 };
      const flow = { original: TO_SERVICE, timeout: 100, destinationNat: { address: "10.9.0.2", port: 8080 } };
      const answers = {
        ...{ protocol: 6, source: "10.9.0.2", sourcePort: 8080 },
        ...{ destination: "10.9.0.5", destinationPort: 4000 },
      };
      conntrack.insert({ original: straight, timeout: 100 });
      expect(() => conntrack.insert(flow)).toThrow(expect.objectContaining({ errno: "EEXIST" }));
      expect(conntrack.find(answers)?.original).toEqual(straight);
      expect(conntrack.delete(answers)).toBe(true);
      conntrack.insert(flow);
      expect(conntrack.find(TO_SERVICE)).toMatchObject({ reply: answers, destinationNat: true, sourceNat: false });
      conntrack.close();
    });
  });

  describe("namespaces", () => {
    it("have names that are made once and taken away once", () => {
      const { kernel, here } = corner();
      expect(kernel.netns.names()).toContain(here.name);
      expect(() => kernel.netns.create(here.name)).toThrow(expect.objectContaining({ code: "KERNEL_EXISTS" }));
      const again = kernel.netns.open(here.name);
      const netlink = kernel.netlink(again);
      expect(netlink.links().map(({ name, up }) => [name, up])).toEqual([["lo", false]]);
      netlink.close();
      again.close();
      expect(kernel.netns.delete(here.name)).toBe(true);
      expect(kernel.netns.delete(here.name)).toBe(false);
      expect(() => kernel.netns.open(here.name)).toThrow(expect.objectContaining({ code: "KERNEL_NOT_FOUND" }));
    });

    it("have numbers that programs know them by, no two the same", () => {
      const { kernel, here, there } = corner();
      const [one, other, own] = [kernel.netns.cookie(here), kernel.netns.cookie(there), kernel.netns.cookie()];
      // Kernels before 5.14 do not tell.
      if (one === undefined) return;
      expect(new Set([one, other, own]).size).toBe(3);
      expect(kernel.netns.cookie(here)).toBe(one);
      expect(kernel.netns.run(here, () => kernel.netns.cookie())).toBe(one);
    });

    it("are left again, also when what was done inside fails", () => {
      const { kernel, here } = corner();
      const outside = () => kernel.netlink().links().length;
      const before = outside();
      expect(
        kernel.netns.run(here, () =>
          kernel
            .netlink()
            .links()
            .map(({ name }) => name),
        ),
      ).toEqual(["lo"]);
      expect(() =>
        kernel.netns.run(here, () => {
          throw new Error("inside");
        }),
      ).toThrow("inside");
      expect(outside()).toBe(before);
    });
  });
}
