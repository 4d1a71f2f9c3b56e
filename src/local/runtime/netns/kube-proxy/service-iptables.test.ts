import { expect, it } from "vitest";
import type { ServicePort } from "../../../../calc/model.ts";
import { plainServicePort } from "../../../../calc/testing/service-port.ts";
import { jumpsText, restoreText } from "./service-iptables.ts";

const node = { clusterCidrs: ["10.244.0.0/16"], addresses: ["172.18.0.2"] };

const api = plainServicePort({
  ...{ id: "default/kubernetes:https/tcp/4", clusterAddress: "10.96.0.1", port: 443 },
  clusterBackends: [{ address: "172.18.0.1", port: 6443, local: false, node: null }],
});

const linesOf = (rows: ServicePort[], saved = "") => restoreText({ family: 4, rows, node, saved }).split("\n");

it("a service has a chain for choosing and one for each backend", () => {
  const own = linesOf([api]).filter((line) => line.startsWith("-A") && line.includes("default/kubernetes:https"));
  const backend = /KUBE-SEP-[A-Z2-7]{16}/.exec(own.join())?.[0];
  expect(own).toEqual([
    '-A KUBE-SERVICES -m comment --comment "default/kubernetes:https cluster IP" -m tcp -p tcp -d 10.96.0.1 --dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y',
    '-A KUBE-SVC-NPX46M4PTMTKRN6Y -m comment --comment "default/kubernetes:https cluster IP" -m tcp -p tcp -d 10.96.0.1 --dport 443 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ',
    `-A KUBE-SVC-NPX46M4PTMTKRN6Y -m comment --comment "default/kubernetes:https -> 172.18.0.1:6443" -j ${backend}`,
    `-A ${backend} -m comment --comment "default/kubernetes:https" -s 172.18.0.1 -j KUBE-MARK-MASQ`,
    `-A ${backend} -m comment --comment "default/kubernetes:https" -m tcp -p tcp -j DNAT --to-destination 172.18.0.1:6443`,
  ]);
});

it("three backends are chosen alike: a third, then half of the rest, then the last", () => {
  const clusterBackends = [1, 2, 3].map((i) => ({ address: `10.244.0.${i}`, port: 80, local: true, node: "n" }));
  const shares = linesOf([{ ...api, clusterBackends }]).flatMap((line) => /--probability (\S+)/.exec(line)?.[1] ?? []);
  expect(shares).toEqual(["0.3333333333", "0.5000000000"]);
});

it("chains of services that are no more go, and jumps that are missing are put before the rules", () => {
  const saved = [
    ...["*nat", ":KUBE-SVC-OLD - [0:0]", ":KUBE-SERVICES - [0:0]", ":DOCKER - [0:0]"],
    '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    "COMMIT",
  ].join("\n");
  const lines = linesOf([api], saved);
  expect(lines).toContain("-X KUBE-SVC-OLD");
  expect(lines.filter((line) => line.includes("DOCKER"))).toEqual([]);
  expect(lines.filter((line) => line.startsWith("-I"))).toEqual([]);
  const jumps = jumpsText(saved)?.split("\n") ?? [];
  expect(jumps.filter((line) => line.startsWith("-I PREROUTING"))).toEqual([]);
  expect(jumps.filter((line) => line.startsWith("-I POSTROUTING")).length).toBe(1);
  expect(jumps.filter((line) => line.startsWith(":KUBE-SERVICES")).length).toBe(1);
});
