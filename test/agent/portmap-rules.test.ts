import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { removePortmapRules } from "../../src/agent/pods/portmap-rules.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { whyNoNodes } from "./node-lab.ts";

const why = whyNoNodes();
const kernel = realKernel();
const NAME = `vt-${process.pid}-portmap`;

/** As the plugin writes them: one rule for each container in a chain of all, one chain for each container. */
const RULES = `*nat
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-SETMARK - [0:0]
:CNI-DN-aaaa - [0:0]
:CNI-DN-bbbb - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"vendor\\" id: \\"first\\"" -m multiport --dports 8080 -j CNI-DN-aaaa
-A CNI-HOSTPORT-DNAT -p udp -m comment --comment "dnat name: \\"vendor\\" id: \\"first\\"" -m multiport --dports 53 -j CNI-DN-aaaa
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"vendor\\" id: \\"second\\"" -m multiport --dports 9090 -j CNI-DN-bbbb
-A CNI-DN-aaaa -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.0.0.1:80
-A CNI-DN-bbbb -p tcp -m tcp --dport 9090 -j DNAT --to-destination 10.0.0.2:80
COMMIT
`;

describe.skipIf(why !== undefined)(`rules of the plugin portmap${why ? ` (${why})` : ""}`, () => {
  let netns: Netns;
  const run = (command: string, input = "") =>
    execFileSync("nsenter", [`--net=/run/netns/${NAME}`, ...command.split(" ")], { input, encoding: "utf8" });
  beforeAll(() => {
    netns = kernel.netns.create(NAME);
  });
  afterAll(() => {
    netns?.close();
    kernel.netns.delete(NAME);
  });

  it("nothing is done on a node that has none", async () => {
    expect(await removePortmapRules(kernel, "first", netns)).toEqual([]);
  });

  it("go with the container they are of, and no others", async () => {
    run("iptables-nft-restore", RULES);
    expect(await removePortmapRules(kernel, "first", netns)).toEqual(["CNI-DN-aaaa"]);
    const left = run("iptables-nft-save -t nat");
    expect(left).not.toMatch(/CNI-DN-aaaa|first/);
    expect(left).toContain("CNI-DN-bbbb");
    expect(await removePortmapRules(kernel, "first", netns)).toEqual([]);
  });
});
