import { describe, expect, it } from "vitest";
import { ModelCopy } from "../../../calc/model-copy.ts";
import { settingsOf } from "../../../calc/settings.ts";
import type { Link } from "../../../kernel/netlink/netlink-port.ts";
import { desiredInterfaces } from "./desired-interfaces.ts";

const NAMES = ["eth0", "gke1", "gke2", "ven1"];
const link = (name: string, at: number): Link => ({
  ...{ index: at + 1, name, kind: undefined, mac: "02:00:00:00:00:01", mtu: 1500, up: true },
  ...{ peer: undefined, master: undefined, vxlan: undefined },
});
const NODE = {
  links: NAMES.map(link),
  // CNI's ptp plugin gives the host side the gateway's address.
  addresses: NAMES.map((_, at) => ({ device: at + 1, address: `10.0.0.${at + 1}/32` })),
  routes: () => [],
  overlay: "vxlan.test",
};

function wanted(interfacePrefix?: string): string[] {
  const model = new ModelCopy();
  model.settings = settingsOf(interfacePrefix === undefined ? {} : { interfacePrefix }, undefined, []);
  const policy = { tiers: [], profiles: [] };
  const [id, interfaceName, addresses] = ["shop/web", "gke1", ["10.8.0.1/32"]];
  model.endpoints.set(id, { id, interfaceName, addresses, mac: null, ingress: policy, egress: policy });
  return desiredInterfaces(model, NODE).map(({ name, place, arrive }) => `${place} ${name}${arrive ? "" : " closed"}`);
}

describe("interfaces that another CNI plugin made", () => {
  it("are no uplinks, though they have an address, and are closed until their pod is known", () => {
    expect(wanted("gke")).toEqual(["workload gke1", "workload gke2 closed", "host eth0 closed"]);
  });

  it("are only those of the prefixes", () => {
    expect(wanted("eni")).toContain("host gke2 closed");
  });
});
