import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PODS } from "../../src/cluster/kinds.ts";
import { type LabNode, type LabPod, type NodeLab, request, serve, until } from "../agent/node-lab.ts";
import {
  attackLab,
  DATAPLANES,
  onlyFrom,
  POLICIES,
  requestAs,
  routesOf,
  tamper,
  whyNoAttacks,
  writeStatus,
} from "./attack-lab.ts";

/** Who a pod is: a tenant that may edit its own pods claims addresses, labels and a past that are not theirs. */
describe.skipIf(whyNoAttacks !== undefined).each(DATAPLANES)(
  `identity of pods, $dataplane${whyNoAttacks ? ` (${whyNoAttacks})` : ""}`,
  ({ bpf }) => {
    let lab: NodeLab;
    let [one, two] = [] as unknown as [LabNode, LabNode];
    const pods: Record<string, LabPod> = {};
    const ends: (() => void)[] = [];
    beforeAll(async () => {
      lab = await attackLab({ bpf });
      [one, two] = lab.nodes as [LabNode, LabNode];
      await lab.client.create(POLICIES, onlyFrom("victim", "victim", { app: "client" }));
      for (const [name, node] of [
        ["attacker", one],
        ["victim", one],
        ["client", two],
      ] as const) {
        const pod = await lab.addPod(name, node, { app: name });
        pods[name] = pod;
        await writeStatus(lab, pod);
        ends.push(await serve(pod, 8080, 4));
      }
      ends.push(await serve(lab.outside, 8080, 4), await serve(two, 8080, 4));
      await until(
        async () => (await request(pods["client"]!, pods["victim"]!.addresses[0]!, 8080)) !== undefined,
        () => one.log(),
      );
    });
    afterAll(async () => {
      for (const end of ends) end();
      await lab?.close();
    });

    const problems = () => one.vendor("node", "show", "problems");
    const untilProblem = async (text: string) =>
      await until(
        async () => (await problems()).includes(text),
        async () => `${text} is not in ${await problems()}`,
      );

    it("an annotation gives a pod no address of another pod, a node, or the outside", async () => {
      const { attacker, victim, client } = pods as Record<string, LabPod>;
      const stolen = client!.addresses[0]!;
      const claims = [attacker!.addresses[0], stolen, lab.outside.addresses.v4, two.addresses.v4, "169.254.169.254"];
      await tamper(lab, attacker!, { annotations: { "cni.vendor.io/podIPs": claims.join(",") } });

      await untilProblem("POD_ADDRESS_REFUSED");
      const routes = await routesOf(one);
      for (const claim of claims.slice(1)) expect(routes).not.toMatch(new RegExp(`^${claim} dev ven`, "m"));
      expect(await requestAs(attacker!, stolen, victim!.addresses[0]!, 8080)).toBeUndefined();
      expect(await request(victim!, lab.outside.addresses.v4, 8080)).toMatch(/^outside saw/);
      expect(await request(victim!, two.addresses.v4, 8080)).toMatch(/^node-2 saw/);
      expect(await request(client!, victim!.addresses[0]!, 8080)).toBe(`victim saw ${stolen}`);
      await tamper(lab, attacker!, { annotations: { "cni.vendor.io/podIPs": attacker!.addresses[0] } });
      await until(
        async () => !(await problems()).includes("POD_ADDRESS_REFUSED"),
        () => problems(),
      );
    });

    it("a label gives a pod nothing of another namespace", async () => {
      const { attacker, victim } = pods as Record<string, LabPod>;
      const policy = onlyFrom("by-namespace", "victim", {});
      const from = [{ namespaceSelector: { matchLabels: { access: "db" } } }];
      Object.assign(policy["spec"] as object, { ingress: [{ from }] });
      await lab.client.create(POLICIES, policy);
      await tamper(lab, attacker!, { labels: { "pcns.access": "db" } });
      // Both changes are in effect once a pod that comes after them is.
      const late = await lab.addPod("late", one);
      expect(await request(attacker!, victim!.addresses[0]!, 8080, 1)).toBeUndefined();
      await lab.removePod(late);
    });

    it("a Pod that stays after its network is gone does not count as the owner of its address", async () => {
      const { victim } = pods as Record<string, LabPod>;
      const fin = await lab.addPod("fin", two, { app: "client" });
      await writeStatus(lab, fin);
      await until(
        async () => (await request(fin, victim!.addresses[0]!, 8080, 1)) !== undefined,
        () => one.log(),
      );
      await tamper(lab, fin, { finalizers: ["example.com/keep"] });
      await lab.client.delete(PODS, { namespace: "default", name: "fin" }, { gracePeriodSeconds: 0 });
      expect((await two.cni("DEL", fin)).code).toBe(0);
      const thief = await lab.addPod(
        "thief",
        two,
        { app: "thief" },
        { "cni.vendor.io/ipAddrs": JSON.stringify(fin.addresses) },
      );
      expect(thief.addresses).toEqual(fin.addresses);
      await writeStatus(lab, thief);
      const late = await lab.addPod("later", one);
      expect(await request(thief, victim!.addresses[0]!, 8080, 2)).toBeUndefined();
      for (const pod of [late, thief]) await lab.removePod(pod);
      await tamper(lab, fin, { finalizers: null });
    });
  },
);
