import { expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { CniPlugin } from "../api/tables/cni-plugins.ts";
import { dataplaneSettings } from "./dataplane-settings.ts";

const choice = { kind: "generic", bpfEnabled: false, leaveProxyRules: false } as const;
const prefixOf = (cni: CniPlugin) =>
  (dataplaneSettings(undefined, { ...choice, cni })["spec"] as { interfacePrefix?: string }).interfacePrefix;

it.each([
  ["Vendor", undefined],
  ["AmazonVPC", "eni"],
  ["AzureVNET", "azv"],
  ["GKE", "gke"],
  ["PointToPoint", "veth"],
] as const)("agents know pods that %s connects by the prefix %s", (cni, prefix) => {
  expect(prefixOf(cni)).toBe(prefix);
});

it("a prefix that someone else has set stays", () => {
  const metadata = {
    name: "default",
    managedFields: [{ manager: "kubectl", fieldsV1: { "f:spec": { "f:interfacePrefix": {} } } }],
  };
  const live = { apiVersion: "crd.vendor.io/v1", kind: "DataplaneConfiguration", metadata } as unknown as KubeObject;
  expect(dataplaneSettings(live, { ...choice, cni: "GKE" })["spec"]).not.toHaveProperty("interfacePrefix");
});
