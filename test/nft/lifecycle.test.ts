import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { MARK } from "../../src/dataplane/nft/ruleset.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import { Lab, TABLE } from "./lab.ts";

const reason = whyNoNftables();
const RESTARTS = 20;
/** How long a flow may go on after the policy that forbids it was applied. */
const CUT_WITHIN = 1_000;

describe.skipIf(reason)(`the life of the nftables data plane${reason ? ` (${reason})` : ""}`, () => {
  let lab: Lab;
  beforeEach(async () => {
    lab = new Lab();
    lab.addPod("a", { app: "a" });
    lab.addPod("b", { app: "b" });
    await lab.settle();
  });
  afterEach(async () => {
    await lab.stop();
  });

  const web = (from: string) => ({
    ...{ tier: "default", selector: "app == 'b'", types: ["Ingress"] },
    ingress: [{ action: "Allow", source: { selector: `app == '${from}'` } }],
  });
  const setWeb = (from: string) => lab.setStored(vendorNames.kinds.globalNetworkPolicy.kind, "default.web", web(from));
  const tcp = (to: string, port = 80) => ({ protocol: "tcp" as const, address: lab.addressOf(to), port });

  it("a policy that forbids it cuts a connection that was allowed, and leaves the others", async () => {
    lab.addPod("c", { app: "c" });
    await lab.settle();
    for (const from of ["a", "c"]) {
      expect(await lab.who(from).order({ do: "hold", name: "kept", address: lab.addressOf("b"), port: 80 })).toBe(true);
      expect(await lab.who(from).order({ do: "say", name: "kept", patience: 5_000 })).toBe(true);
    }
    setWeb("a");
    const before = performance.now();
    await lab.settle();
    const took = performance.now() - before;
    expect(await lab.who("c").order({ do: "say", name: "kept", patience: 600 })).toBe(false);
    expect(await lab.who("a").order({ do: "say", name: "kept", patience: 5_000 })).toBe(true);
    expect(took).toBeLessThan(CUT_WITHIN);

    // A label is enough: whom the policy means changes, and so does what goes on.
    setWeb("c");
    await lab.settle();
    expect(await lab.who("a").order({ do: "say", name: "kept", patience: 600 })).toBe(false);
  });

  it("no denied packet passes and no allowed connection breaks while agents come and go", async () => {
    setWeb("a");
    lab.addPod("c", { app: "c" });
    await lab.settle();
    const b = { address: lab.addressOf("b"), port: 80 };
    await lab.who("a").order({ do: "hold", name: "kept", ...b });
    await lab.who("c").order({ do: "stream", name: "denied", ...b });
    await lab.who("a").order({ do: "stream", name: "allowed", ...b });
    for (let life = 0; life < RESTARTS; life++) {
      await lab.restart();
      expect(await lab.who("a").order({ do: "say", name: "kept", patience: 5_000 })).toBe(true);
    }
    const denied = (await lab.who("c").order({ do: "count", name: "denied" })) as { answers: number; sent: number };
    const allowed = (await lab.who("a").order({ do: "count", name: "allowed" })) as { answers: number; sent: number };
    expect(denied.answers).toBe(0);
    expect(Math.min(denied.sent, allowed.answers)).toBeGreaterThan(RESTARTS);
  });

  it("a restart writes nothing, and finds nothing to sweep", async () => {
    setWeb("a");
    await lab.settle();
    const before = JSON.stringify(await lab.nft.list(`list table inet ${TABLE}`));
    await lab.restart();
    const after = JSON.stringify(await lab.nft.list(`list table inet ${TABLE}`));
    expect(handlesOf(after)).toEqual(handlesOf(before));
    expect(await lab.dataplane.sweep()).toEqual({ removed: [] });
    expect(lab.network.sweep()).toEqual({ removed: [] });
  });

  it("what an agent that died had left is gone after the next one knows everything", async () => {
    setWeb("a");
    await lab.settle();
    lab.remove(vendorNames.kinds.globalNetworkPolicy.kind, "default.web");
    await lab.restart();
    const { removed } = await lab.dataplane.sweep();
    expect(removed.some((line) => line.startsWith("chain p-"))).toBe(true);
    expect(await lab.who("outside").reaches(tcp("b"), true)).toBe(true);
  });

  it("mends what somebody else deleted, by itself when told to look, or when a change finds it gone", async () => {
    setWeb("a");
    await lab.settle();
    const pods = async () => JSON.stringify(await lab.nft.list(`list map inet ${TABLE} to-pod`));
    await lab.nft.run(`delete table inet ${TABLE}`);
    await lab.dataplane.resync();
    expect(await pods()).toContain("goto");
    await lab.nft.run(`delete table inet ${TABLE}`);
    lab.addPod("c", { app: "c" });
    const { objects } = await lab.settle();
    expect(objects.filter(({ failed }) => failed)).toEqual([]);
    expect(await lab.who("c").reaches(tcp("b"), false)).toBe(false);
    expect(await lab.who("a").reaches(tcp("b"), true)).toBe(true);
  });

  it("takes everything of its own off the node, and only that", async () => {
    await lab.nft.run("add table inet theirs");
    await lab.dataplane.remove();
    await lab.network.remove();
    expect(await lab.nft.tables()).toEqual([{ family: "inet", name: "theirs" }]);
    const netlink = lab.netlink();
    expect(netlink.routes({ protocol: 80 })).toEqual([]);
    netlink.close();
  });

  it("lives beside a filter that forwards nothing by default", async (context) => {
    if (!existsSync("/usr/sbin/iptables-nft")) context.skip("needs iptables");
    inNode(lab, "iptables-nft", "-P", "FORWARD", "DROP");
    setWeb("a");
    await lab.restart();
    lab.addPod("c", { app: "c" });
    await lab.settle();
    expect(await lab.who("a").reaches(tcp("b"), true)).toBe(true);
    expect(await lab.who("c").reaches(tcp("b"), false)).toBe(false);
    expect(inNode(lab, "iptables-nft", "-S", "FORWARD")).toContain(`--mark 0x${MARK.allowed.toString(16)}`);
    await lab.dataplane.remove();
    expect(inNode(lab, "iptables-nft", "-S", "FORWARD")).not.toContain("--mark");
  });

  it("trusts nobody's filter, but marks what is allowed so that the older iptables can", async (context) => {
    if (!existsSync("/usr/sbin/iptables-legacy")) context.skip("needs iptables-legacy");
    try {
      inNode(lab, "iptables-legacy", "-P", "FORWARD", "DROP");
    } catch {
      context.skip("this kernel has no iptables of the older kind");
    }
    expect(await lab.who("a").reaches(tcp("b"), false)).toBe(false);
    const mark = `0x${MARK.allowed.toString(16)}`;
    inNode(lab, "iptables-legacy", "-A", "FORWARD", "-m", "mark", "--mark", `${mark}/${mark}`, "-j", "ACCEPT");
    expect(await lab.who("a").reaches(tcp("b"), true)).toBe(true);
  });

  it("judges what a service's proxy translated by where it goes, and lets a pod reach itself through it", async () => {
    setWeb("a");
    lab.addPod("c", { app: "c" });
    await lab.settle();
    await lab.nft.run(`table ip proxy {
      chain services { type nat hook prerouting priority dstnat; ip daddr 10.96.0.1 tcp dport 80 dnat to ${lab.addressOf("b")}:80; }
      chain hairpin { type nat hook postrouting priority srcnat; ip saddr ${lab.addressOf("b")} ip daddr ${lab.addressOf("b")} masquerade; }
      chain broken { type filter hook forward priority filter; ct state invalid drop; }
    }`);
    const service = { protocol: "tcp" as const, address: "10.96.0.1", port: 80 };
    expect(await lab.who("a").reaches(service, true)).toBe(true);
    expect(await lab.who("c").reaches(service, false)).toBe(false);
    expect(await lab.who("b").reaches(service, true)).toBe(true);
  });

  it("a pod that policy denies everything reaches itself through its Service, and nobody else does with its address", async () => {
    const deny = { tier: "default", selector: "app == 'b'", types: ["Ingress", "Egress"] };
    lab.setStored(vendorNames.kinds.globalNetworkPolicy.kind, "default.nothing", deny);
    await lab.settle();
    const families = [4, 6] as const;
    const service = { 4: "10.96.0.1", 6: "fd96::1" };
    const own = { 4: lab.addressOf("b", 4), 6: lab.addressOf("b", 6) };
    const dnat = families.flatMap((family) => {
      const [ip, to] = family === 4 ? ["ip", `${own[4]}:80`] : ["ip6", `[${own[6]}]:80`];
      return ["tcp", "udp"].map((l4) => `${ip} daddr ${service[family]} ${l4} dport 80 dnat ${ip} to ${to};`);
    });
    await lab.nft.run(`table inet proxy {
      chain services { type nat hook prerouting priority dstnat; ${dnat.join(" ")} }
      chain hairpin { type nat hook postrouting priority srcnat; ip saddr ${own[4]} ip daddr ${own[4]} masquerade; ip6 saddr ${own[6]} ip6 daddr ${own[6]} masquerade; }
    }`);
    for (const family of families) {
      const address = service[family];
      expect(await lab.who("b").reaches({ protocol: "tcp", address, port: 80 }, true)).toBe(true);
      expect(await lab.who("b").reaches({ protocol: "udp", address, port: 80 }, true)).toBe(true);
      expect(await lab.who("a").reaches({ protocol: "tcp", address, port: 80 }, false)).toBe(false);
      for (const from of ["a", "outside"]) {
        const ip = (...words: string[]) => inPlace(lab.placeOf(from), "ip", `-${family}`, ...words);
        ip("address", "add", own[family], "dev", "eth0");
        // Else it would mean itself.
        ip("route", "flush", "table", "local", own[family]);
        if (from === "outside") ip("route", "add", address, "via", lab.addressOf("host", family));
        inPlace(lab.placeOf(from), "sysctl", "-qw", `net.ipv${family}.ip_nonlocal_bind=1`);
        const forged = { do: "send", source: own[family], sourcePort: 4000, text: `forged by ${from}`, port: 80 };
        for (const to of [address, own[family]]) {
          expect(await lab.who(from).order({ ...forged, address: to })).toBe(true);
        }
      }
      const honest = { do: "send", source: own[family], sourcePort: 4001, text: "from itself", port: 80, address };
      expect(await lab.who("b").order(honest)).toBe(true);
      await expect.poll(() => lab.who("b").order({ do: "heard" }), { timeout: 5_000 }).toEqual(["from itself"]);
    }
  });

  it("packets from a pool leave with the node's address, and with their own inside", async () => {
    lab.setStored("IPPool", "pool", { cidr: "10.9.0.0/24", natOutgoing: true });
    await lab.settle();
    expect(await lab.who("a").reaches(tcp("outside"), true)).toBe(true);
    expect(await lab.who("a").reaches(tcp("b"), true)).toBe(true);
    const { rows } = await lab.dataplane.show("conntrack");
    const flows = rows.map(([, from, to]) => `${from} ${to}`);
    expect(
      flows.some((text) => text.startsWith(lab.addressOf("a")) && text.endsWith(`${lab.addressOf("outside")}:80`)),
    ).toBe(true);
    const conntrack = lab.kernel.conntrack(lab.node);
    const all = await conntrack.list();
    const to = (address: string) =>
      all.find(({ original }) => original.destination === address && original.source === lab.addressOf("a"));
    expect(to(lab.addressOf("outside"))).toMatchObject({
      sourceNat: true,
      reply: { destination: lab.addressOf("host") },
    });
    expect(to(lab.addressOf("b"))).toMatchObject({ sourceNat: false });
    conntrack.close();
  });

  it("packets from a pool to a node keep the pod's address where nodes are spared", async () => {
    const status = { addresses: [{ type: "InternalIP", address: lab.addressOf("outside") }] };
    lab.set({ apiVersion: "v1", kind: "Node", metadata: { name: "there" }, status });
    lab.setStored("IPPool", "pool", { cidr: "10.9.0.0/24", natOutgoing: true });
    const sourceNat = async (natOutgoingExclusions: string) => {
      lab.setStored("DataplaneConfiguration", "default", { natOutgoingExclusions });
      await lab.settle();
      const conntrack = lab.kernel.conntrack(lab.node);
      for (const { original } of await conntrack.list()) conntrack.delete(original);
      await lab.who("a").reaches(tcp("outside"), true);
      const found = (await conntrack.list()).find(({ original }) => original.destination === lab.addressOf("outside"));
      conntrack.close();
      return found?.sourceNat;
    };
    expect(await sourceNat("IPPoolsOnly")).toBe(true);
    expect(await sourceNat("IPPoolsAndHostIPs")).toBe(false);
    lab.remove("Node", "there");
    lab.remove("DataplaneConfiguration", "default");
    await lab.settle();
  });
});

function inNode(lab: Lab, command: string, ...words: string[]): string {
  return inPlace(lab.placeOf("host"), command, ...words);
}

function inPlace(place: string, command: string, ...words: string[]): string {
  return execFileSync("nsenter", [`--net=/run/netns/${place}`, command, ...words], { stdio: "pipe" }).toString();
}

/** Which rules there are, by the numbers the kernel gave them: a rule that was written again has another. */
function handlesOf(json: string): string[] {
  return [...json.matchAll(/"handle":(\d+)/g)].map(([, handle]) => handle!).sort();
}
