import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import type { HostEndpointTemplate } from "../settings/effective-settings.ts";
import { desiredEndpoints } from "./desired-endpoints.ts";
import { endpointName } from "./endpoint-name.ts";
import { hostEndpointRules } from "./host-endpoint-rules.ts";
import { nodeFacts } from "./node-facts.ts";

const NODE: KubeObject = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "a", labels: { "vendor.io/created-by": "a-person", role: "db" } },
  status: { addresses: [{ type: "InternalIP", address: "10.0.0.1" }] },
};

describe("the host endpoints a node should have", () => {
  it("none while they are turned off, whatever the templates say", () => {
    const rules = hostEndpointRules({
      autoCreate: "Disabled",
      createDefaultHostEndpoint: "Enabled",
      templates: [{ generateName: "x", interfaceCIDRs: ["0.0.0.0/0"] } as HostEndpointTemplate],
    });
    expect(desiredEndpoints(nodeFacts(NODE, []), rules)).toEqual([]);
  });

  it("a node's own created-by label does not make its endpoint somebody else's", () => {
    const rules = hostEndpointRules({ autoCreate: "Enabled", createDefaultHostEndpoint: "Enabled", templates: [] });
    const [endpoint] = desiredEndpoints(nodeFacts(NODE, []), rules);
    expect(endpoint?.metadata.labels).toEqual({ role: "db", "vendor.io/created-by": "vendor-kube-controllers" });
  });

  it("a template that says nothing of addresses or interfaces makes none", () => {
    const templates = [{ generateName: "x" } as HostEndpointTemplate];
    const rules = hostEndpointRules({ autoCreate: "Enabled", createDefaultHostEndpoint: "Disabled", templates });
    expect(desiredEndpoints(nodeFacts(NODE, []), rules)).toEqual([]);
  });

  it.each([
    ["not an address", "an interface's list that cannot be read"],
    ['[{"name":"eth0"}]', "an interface without addresses"],
    ['{"name":"eth0"}', "one interface that is no list"],
  ])("%s: %s is no interface", (text) => {
    const node = { ...NODE, metadata: { ...NODE.metadata, annotations: { "vendor.io/interfaces": text } } };
    expect(nodeFacts(node, ["not-one", "10.0.0.1", "10.0.0.2"])).toMatchObject({
      interfaces: [],
      addresses: ["10.0.0.1", "10.0.0.2"],
    });
  });
});

describe("the name of an endpoint", () => {
  it("has the node's name, and what tells it apart from the node's others", () => {
    expect(endpointName("a")).toBe("a-auto-hep");
    expect(endpointName("a.b", "net", "eth0.7")).toBe("a.b-net-eth0.7-auto-hep");
  });

  it("is a hash of what would be too long or no name, the same each time and different for each", () => {
    const long = "n".repeat(250);
    expect(endpointName(long)).toBe(endpointName(long));
    expect(endpointName(long)).not.toBe(endpointName(`${long}n`));
    expect(endpointName("a", "net", "Eth_0")).toMatch(/^[a-z0-9]+-auto-hep$/);
    expect(endpointName("n".repeat(244))).toHaveLength(253);
  });
});
