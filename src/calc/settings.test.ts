import { describe, expect, it } from "vitest";
import { vendorNames } from "../api/names.ts";
import { groupVersion } from "../api/object.ts";
import { type DataplaneConfiguration, dataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import { DATAPLANE_SETTINGS, type Setting } from "../api/resources/dataplane-settings.ts";
import { placesOf } from "../api/resources/resource.ts";
import { REFUSED_FIELDS } from "../api/tables/refused-fields.ts";
import { validateObject } from "../api/validation/validate.ts";
import { withoutEffect } from "./settings.ts";

type Spec = DataplaneConfiguration["spec"];

describe("settings of the data plane", () => {
  it("has defaults that could be written", () => {
    const defaults = Object.entries(DATAPLANE_SETTINGS as Record<string, Setting>).flatMap(([field, row]) =>
      row.default === undefined ? [] : [[field, row.default]],
    );
    const { stored } = placesOf(dataplaneConfiguration, vendorNames);
    const object = {
      ...{ apiVersion: groupVersion(stored), kind: stored.kind, metadata: { name: "default" } },
      spec: Object.fromEntries(defaults),
    };
    expect(validateObject(object)).toEqual([]);
  });

  it("has no field that is refused, too", () => {
    const both = Object.keys(DATAPLANE_SETTINGS).filter(
      (field) => `spec.${field}` in (REFUSED_FIELDS.dataplaneConfiguration ?? {}),
    );
    expect(both).toEqual([]);
  });

  const problems = (spec: Spec) =>
    withoutEffect({ apiVersion: "", kind: "DataplaneConfiguration", metadata: { name: "default" }, spec });

  it("what an older CRD stores and nothing acts on is reported", () => {
    const [problem] = problems({
      bpfHostConntrackBypass: true,
      vxlanPort: 1,
      ...({ bpfProfiling: "Enabled" } as object),
    });
    expect(problem?.message).toMatch(/: bpfHostConntrackBypass, bpfProfiling$/);
  });

  it("what asks for what happens anyway is not", () => {
    expect(problems({ bpfEnforceRPF: "Strict", bpfHostConntrackBypass: false, floatingIPs: "Disabled" })).toEqual([]);
  });
});
