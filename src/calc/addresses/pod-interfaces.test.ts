import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { createCalculator } from "../calculator.ts";
import { ModelCopy } from "../model-copy.ts";

const PREFIX = (interfacePrefix: string): KubeObject => ({
  apiVersion: "crd.vendor.io/v1",
  kind: "DataplaneConfiguration",
  metadata: { name: "default" },
  spec: { interfacePrefix },
});

interface PodChoice {
  node?: string;
  created?: string;
  ending?: boolean;
}

function pod(name: string, ip: string, { node = "here", created = "2026-01-01", ending }: PodChoice = {}): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...{ name, namespace: "shop", creationTimestamp: `${created}T00:00:00Z` },
      annotations: { "cni.vendor.io/mac": "02:00:00:00:00:01" },
      ...(ending ? { deletionTimestamp: "2026-01-03T00:00:00Z" } : {}),
    },
    spec: { nodeName: node, containers: [{ name: "main" }] },
    status: { phase: "Running", podIPs: [{ ip }] },
  };
}

function node() {
  const calculator = createCalculator("here", vendorNames, { foreignAddresses: true });
  const model = new ModelCopy();
  const settle = () => {
    const delta = calculator.takeDelta();
    if (delta) model.apply(delta);
  };
  return {
    model,
    tell(...objects: KubeObject[]) {
      for (const object of objects) calculator.set(object);
      settle();
    },
    remove(name: string) {
      calculator.remove({ group: "", kind: "Pod" }, { name, namespace: "shop" });
      settle();
    },
    routes(routes: Record<string, string>) {
      calculator.setPodInterfaces(new Map(Object.entries(routes)));
      settle();
    },
    interfaces: () => Object.fromEntries([...model.endpoints.values()].map((one) => [one.id, one.interfaceName])),
    problems: () => [...model.problems.values()].map(({ code, object }) => `${code} ${object.name}`),
  };
}

describe("the interface of a pod that another CNI plugin connects", () => {
  it("is the one its route leads to, from when it is there until it goes", () => {
    const at = node();
    at.tell(PREFIX("eni,gke"), pod("web", "10.0.0.1"), pod("far", "10.0.1.1", { node: "there" }));
    expect([at.interfaces(), at.problems()]).toEqual([{}, ["POD_INTERFACE_UNKNOWN web"]]);
    at.routes({ "10.0.0.1": "eni1", "10.0.1.1": "eni2" });
    expect([at.interfaces(), at.problems()]).toEqual([{ "shop/web": "eni1" }, []]);
    expect(at.model.endpoints.get("shop/web")?.mac).toBeNull();
    at.routes({ "10.0.0.1": "gke7" });
    expect(at.interfaces()).toEqual({ "shop/web": "gke7" });
    at.routes({});
    expect([at.interfaces(), at.problems()]).toEqual([{}, ["POD_INTERFACE_UNKNOWN web"]]);
    at.tell(pod("web", "10.0.0.1", { ending: true }));
    expect(at.problems()).toEqual([]);
  });

  it("has one of the prefixes, as they are now", () => {
    const at = node();
    at.tell(pod("web", "10.0.0.1"));
    at.routes({ "10.0.0.1": "azv1" });
    expect(at.interfaces()).toEqual({});
    at.tell(PREFIX("azv"));
    expect(at.interfaces()).toEqual({ "shop/web": "azv1" });
    at.tell(PREFIX("eni"));
    expect(at.interfaces()).toEqual({});
  });

  it("is the later pod's, where the address was another's whose object is still there", () => {
    const old = pod("old", "10.0.0.1", { created: "2026-01-01" });
    const ended = pod("old", "10.0.0.1", { created: "2026-01-02", ending: true });
    const made = pod("new", "10.0.0.1", { created: "2026-01-01" });
    for (const objects of [
      [ended, made],
      [made, ended],
      [made, old, ended],
    ]) {
      const at = node();
      at.routes({ "10.0.0.1": "eni1" });
      at.tell(PREFIX("eni"), ...objects);
      expect(at.interfaces()).toEqual({ "shop/new": "eni1" });
      at.remove("new");
      expect(at.interfaces()).toEqual({ "shop/old": "eni1" });
    }
  });
});
