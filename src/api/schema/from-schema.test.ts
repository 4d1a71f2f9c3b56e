import { describe, expectTypeOf, it } from "vitest";
import type { KubeObject } from "../object.ts";
import type { Installation, InstallationSpec } from "../resources/installation.ts";
import type { IPAMBlock } from "../resources/ipam.ts";
import type { PolicyRule } from "../resources/policy-rule.ts";

describe("types come from the schemas", () => {
  it("so words are the allowed words", () => {
    type Network = NonNullable<InstallationSpec["vendorNetwork"]>;
    expectTypeOf<Network["linuxDataplane"]>().toEqualTypeOf<"BPF" | "Nftables" | undefined>();
    expectTypeOf<InstallationSpec["variant"]>().toEqualTypeOf<"OpenSource">();
  });

  it("so null is a value only where the schema says so", () => {
    type HostPorts = NonNullable<InstallationSpec["vendorNetwork"]>["hostPorts"];
    expectTypeOf<HostPorts>().toEqualTypeOf<{ portMapping?: "Enabled" | "Disabled" } | null | undefined>();
  });

  it("so required fields are there, lists hold their items, and numbers may be text where both are allowed", () => {
    type Pool = NonNullable<NonNullable<InstallationSpec["vendorNetwork"]>["ipPools"]>[number];
    expectTypeOf<Pool["cidr"]>().toEqualTypeOf<string>();
    expectTypeOf<Pool["blockSize"]>().toEqualTypeOf<number | undefined>();
    expectTypeOf<{ cidr: string }>().toExtend<Pool>();
    expectTypeOf<IPAMBlock["spec"]["allocations"]>().toEqualTypeOf<(number | null)[]>();
    expectTypeOf<PolicyRule["protocol"]>().toEqualTypeOf<string | number | undefined>();
    expectTypeOf<PolicyRule["ipVersion"]>().toEqualTypeOf<4 | 6 | undefined>();
  });

  it("so every object of ours is an object of the orchestrator", () => {
    expectTypeOf<Installation>().toExtend<Omit<KubeObject, "spec">>();
    expectTypeOf<keyof Installation>().toEqualTypeOf<"apiVersion" | "kind" | "metadata" | "spec" | "status">();
  });
});
