import { describe, expect, it, vi } from "vitest";
import type { Corner } from "./contract.ts";

const PROTOCOL = 0x88b5;

export function framesContract(corner: () => Corner): void {
  describe("frames", () => {
    it("go from one interface to the other, whole, and only those of the protocol", async () => {
      const { kernel, here, there } = corner();
      const netlink = { here: kernel.netlink(here), there: kernel.netlink(there) };
      netlink.here.addVeth({ name: "a", peer: { name: "b", netns: there } });
      const [a, b] = [netlink.here.link("a")!, netlink.there.link("b")!];
      const received: string[] = [];
      const one = kernel.frames(here).open({ device: a.index, protocol: PROTOCOL }, () => {});
      const other = kernel
        .frames(there)
        .open({ device: b.index, protocol: PROTOCOL }, (frame) => received.push(frame.toString("hex")));
      const frame = (protocol: number, length: number) => {
        const bytes = Buffer.alloc(length, 7);
        for (const [at, mac] of [b.mac!, a.mac!].entries()) bytes.write(mac.replaceAll(":", ""), at * 6, "hex");
        bytes.writeUInt16BE(protocol, 12);
        return bytes;
      };
      expect(one.send(frame(PROTOCOL, 100))).toBe(false);
      netlink.here.changeLink(a.index, { up: true });
      netlink.there.changeLink(b.index, { up: true });
      expect(one.send(frame(PROTOCOL, 1515))).toBe(false);
      // Again and again: an interface that is up loses frames until the other end is known to be up.
      await vi.waitFor(() => {
        expect(one.send(frame(PROTOCOL + 1, 100))).toBe(true);
        expect(one.send(frame(PROTOCOL, 1514))).toBe(true);
        expect(received.length).toBeGreaterThan(0);
      });
      expect(new Set(received)).toEqual(new Set([frame(PROTOCOL, 1514).toString("hex")]));
      one.close();
      one.close();
      expect(one.send(frame(PROTOCOL, 100))).toBe(false);
      other.close();
      for (const port of Object.values(netlink)) port.close();
    });

    it("cannot be taken from an interface that is not there", () => {
      const { kernel, here } = corner();
      expect(() => kernel.frames(here).open({ device: 999, protocol: PROTOCOL }, () => {})).toThrow(
        expect.objectContaining({ errno: "ENODEV" }),
      );
    });
  });
}
