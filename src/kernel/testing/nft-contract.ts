import { beforeEach, describe, expect, it } from "vitest";
import type { Corner } from "./contract.ts";

const RULES = `
table inet ours {
  set pods { type ipv4_addr; flags interval; elements = { 10.0.0.1, 10.1.0.0/16 }; }
  map dispatch { type ifname : verdict; }
  chain base { type filter hook forward priority 0; policy accept; }
  chain policy-a { ip saddr @pods accept comment "policy a"; }
}
add rule inet ours base iifname vmap @dispatch
add element inet ours dispatch { "ven0" : jump policy-a }
`;

export function nftContract(corner: () => Corner, whyNot: () => string | undefined): void {
  describe("nftables", () => {
    beforeEach((context) => context.skip(whyNot() !== undefined, whyNot()));

    it("hold a transaction whole, and list it", async () => {
      const nft = corner().kernel.nft(corner().here);
      await nft.run(RULES);
      expect(await nft.tables()).toEqual([{ family: "inet", name: "ours" }]);
      const listed = await nft.list("list table inet ours");
      const named = (kind: string) =>
        listed.flatMap((item) => (item[kind] ? [item[kind] as Record<string, unknown>] : []));
      expect(named("chain").map(({ name }) => name)).toEqual(["base", "policy-a"]);
      expect(named("chain")[0]).toMatchObject({ type: "filter", hook: "forward", policy: "accept" });
      const elements = named("set").find(({ name }) => name === "pods")?.["elem"];
      expect(elements).toEqual(["10.0.0.1", { prefix: { addr: "10.1.0.0", len: 16 } }]);
      expect(named("map").map(({ name }) => name)).toEqual(["dispatch"]);
      expect(named("rule").map(({ chain, comment }) => [chain, comment])).toEqual([
        ["base", undefined],
        ["policy-a", "policy a"],
      ]);
      nft.close();
    });

    it("list one chain of somebody else's table, right after a transaction of our own", async () => {
      const nft = corner().kernel.nft(corner().here);
      await nft.run(
        "add table ip theirs\nadd chain ip theirs FORWARD { type filter hook forward priority 0; policy drop; }",
      );
      await nft.run(RULES);
      const listed = await nft.list("list chain ip theirs FORWARD");
      expect(listed.flatMap((item) => item["chain"] ?? [])).toMatchObject([{ name: "FORWARD", policy: "drop" }]);
      nft.close();
    });

    it("hold nothing of a transaction that has one mistake", async () => {
      const nft = corner().kernel.nft(corner().here);
      const mistaken = "add table inet one\nadd rule inet nowhere base accept";
      await expect(nft.run(mistaken)).rejects.toMatchObject({ code: "KERNEL_NFT_REFUSED" });
      await expect(nft.run(mistaken)).rejects.toThrow(/No such file or directory/);
      expect(await nft.tables()).toEqual([]);
      nft.close();
    });

    it("refuse to lose a chain that is still jumped to", async () => {
      const nft = corner().kernel.nft(corner().here);
      await nft.run(RULES);
      await expect(nft.run("delete chain inet ours policy-a")).rejects.toThrow(/Device or resource busy/);
      await nft.run('delete element inet ours dispatch { "ven0" }\ndelete chain inet ours policy-a');
      await nft.run("delete table inet ours");
      await expect(nft.run("delete table inet ours")).rejects.toThrow(/No such file or directory/);
      nft.close();
    });

    it("change single elements and rules", async () => {
      const nft = corner().kernel.nft(corner().here);
      await nft.run(RULES);
      await nft.run("add element inet ours pods { 10.2.0.0/24 }\ndelete element inet ours pods { 10.0.0.1 }");
      await nft.run("flush chain inet ours policy-a");
      const [set] = (await nft.list("list set inet ours pods")).flatMap((item) => (item["set"] ? [item["set"]] : []));
      const elem = [{ prefix: { addr: "10.1.0.0", len: 16 } }, { prefix: { addr: "10.2.0.0", len: 24 } }];
      expect(set).toMatchObject({ elem });
      const rules = (await nft.list("list table inet ours")).filter((item) => item["rule"]);
      expect(rules.length).toBe(1);
      nft.close();
    });

    it("are each namespace's own", async () => {
      const { kernel, here, there } = corner();
      const [one, other] = [kernel.nft(here), kernel.nft(there)];
      await Promise.all([one.run("add table ip one"), other.run("add table ip other")]);
      expect(await one.tables()).toEqual([{ family: "ip", name: "one" }]);
      expect(await other.tables()).toEqual([{ family: "ip", name: "other" }]);
      one.close();
      other.close();
    });
  });
}
