import { describe, expect, it } from "vitest";
import { installation } from "../resources/installation.ts";
import { objectSchema } from "../resources/resource.ts";
import { validateObject } from "../validation/validate.ts";
import { CLUSTER_KINDS, type ClusterKind } from "./cluster-kinds.ts";
import { EFFECTIVE_DEFAULTS, effectiveInstallation } from "./defaults.ts";

const EMPTY = { variant: "OpenSource" } as const;

describe("an installation that says nothing but its variant", () => {
  it.each(Object.keys(CLUSTER_KINDS) as ClusterKind[])("is complete and valid on %s", (kind) => {
    const spec = effectiveInstallation(EMPTY, { kind });
    const object = { apiVersion: "operator.vendor.io/v1", kind: "Installation", metadata: { name: "default" }, spec };
    expect(validateObject(object, { kind })).toEqual([]);
    expect(spec.vendorNetwork?.linuxDataplane).toBe(CLUSTER_KINDS[kind].ebpfByDefault ? "BPF" : "Nftables");
  });

  it("gets pools of the cluster's own prefixes, both families", () => {
    const spec = effectiveInstallation(EMPTY, { kind: "generic", podCidrs: ["10.244.0.0/16", "fd00:10:244::/56"] });
    expect(spec.vendorNetwork?.ipPools).toMatchObject([
      { name: "default-ipv4-ippool", encapsulation: "VXLANCrossSubnet", blockSize: 26, natOutgoing: "Enabled" },
      { name: "default-ipv6-ippool", encapsulation: "VXLANCrossSubnet", blockSize: 122, natOutgoing: "Disabled" },
    ]);
    expect(spec.vendorNetwork?.nodeAddressAutodetectionV6).toEqual({ firstFound: true });
  });
});

describe("defaults", () => {
  it("never change the data plane of a running cluster", () => {
    const previous = { ...EMPTY, vendorNetwork: { linuxDataplane: "Nftables" } } as const;
    const spec = effectiveInstallation(EMPTY, { kind: "generic", previous });
    expect(spec.vendorNetwork?.linuxDataplane).toBe("Nftables");
  });

  it("never change what is written, and give the same again", () => {
    const written = {
      ...EMPTY,
      controlPlaneReplicas: 1,
      vendorNetwork: { linuxDataplane: "Nftables", hostPorts: null, ipPools: [{ cidr: "10.0.0.0/8", blockSize: 24 }] },
    } as const;
    const once = effectiveInstallation(
      { ...written, vendorNetwork: { ...written.vendorNetwork, ipPools: [...written.vendorNetwork.ipPools] } },
      { kind: "eks" },
    );
    expect(once).toMatchObject(written);
    expect(effectiveInstallation(once, { kind: "eks" })).toEqual(once);
  });

  it("name pools apart", () => {
    const ipPools = [{ cidr: "10.1.0.0/16" }, { cidr: "10.2.0.0/16" }, { cidr: "fd00::/64" }, { cidr: "fd01::/64" }];
    const spec = effectiveInstallation({ ...EMPTY, vendorNetwork: { ipPools } }, { kind: "generic" });
    expect(spec.vendorNetwork?.ipPools?.map((pool) => pool.name)).toEqual([
      "10-1-0-0-16",
      "10-2-0-0-16",
      "fd00-0000-0000-0000-0000-0000-0000-0000-64",
      "fd01-0000-0000-0000-0000-0000-0000-0000-64",
    ]);
  });

  it("turn host ports off with eBPF and with another CNI plugin", () => {
    const withSpec = (spec: object) =>
      effectiveInstallation({ ...EMPTY, ...spec }, { kind: "eks" }).vendorNetwork?.hostPorts;
    expect(withSpec({})).toEqual({ portMapping: "Enabled" });
    expect(withSpec({ vendorNetwork: { linuxDataplane: "BPF" } })).toBeNull();
    expect(withSpec({ cni: { type: "AmazonVPC" } })).toBeNull();
  });

  it.each(EFFECTIVE_DEFAULTS)("$path is a field of the installation", ({ path }) => {
    let here = objectSchema(installation) as ReturnType<typeof objectSchema> | undefined;
    for (const step of path.replaceAll("[]", "").split(".")) here = (here?.items ?? here)?.properties?.[step];
    expect(here).toBeDefined();
  });
});
