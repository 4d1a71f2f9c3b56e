import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { DataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import { EFFECTIVE, settingsOf, withoutEffect } from "./settings.ts";

type Spec = DataplaneConfiguration["spec"];

/** Any value that is not the default. */
const OTHER: Spec = {
  bpfEnabled: true,
  bpfExternalServiceMode: "DSR",
  bpfDSROptoutCIDRs: ["192.0.2.0/24"],
  bpfDataIfacePattern: "^net",
  bpfServiceProxyHealthzPort: 1,
  bpfServiceProxyIptablesCleanupEnabled: false,
  cgroupV2Path: "/other",
  CgroupV2Path: "/other",
  defaultEndpointToHostAction: "Drop",
  failsafeInboundHostPorts: [],
  failsafeOutboundHostPorts: [],
  healthPort: 1,
  ipv6Support: false,
  natOutgoingAddress: "192.0.2.1",
  vxlanVNI: 1,
  vxlanPort: 1,
  vxlanMTU: 1,
  vxlanMTUV6: 1,
  workloadConntrackPercent: 1,
};

const ROOT = new URL("..", import.meta.url).pathname;
/** The API, what is printed from it, what older releases had, and what only tests use. */
const NOT_READING =
  /^(?:api|gen|releases|cli\/reference|local\/installed)\/|\.test\.ts$|\/(?:testing|fake)\/|^calc\/settings\.ts$/;

const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !NOT_READING.test(name))
  .map((name) => readFileSync(join(ROOT, name), "utf8"));

/** Whether any program has the property, of this object: `configuration.field`, or taken out of it. */
function isRead(property: string, of: string): boolean {
  const direct = new RegExp(`\\b(?:${of})\\??\\.${property}\\b`);
  const taken = new RegExp(`\\{[^{}]*\\b${property}\\b[^{}]*\\} = [\\w.?!()]*(?:${of})\\b`);
  return files.some((text) => direct.test(text) || taken.test(text));
}

/** Paths of what the setting changes: `vxlan.port`. */
function changedBy(field: keyof Spec): string[] {
  const pathsOf = (value: unknown, path: string): [string, string][] =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.entries(value).flatMap(([key, item]) => pathsOf(item, path === "" ? key : `${path}.${key}`))
      : [[path, JSON.stringify(value)]];
  const { configuration: _, ...before } = settingsOf(undefined, undefined, []);
  const { configuration: __, ...after } = settingsOf({ [field]: OTHER[field] }, undefined, []);
  const was = new Map(pathsOf(before, ""));
  return pathsOf(after, "").flatMap(([path, value]) => (was.get(path) === value ? [] : [path]));
}

describe("settings of the data plane", () => {
  it.each([...EFFECTIVE] as (keyof Spec)[])("%s is read by a program", (field) => {
    expect(OTHER[field], `a value of ${field} for this test`).toBeDefined();
    const paths = changedBy(field);
    if (paths.length === 0) return expect(isRead(field, "configuration|spec|dataplane")).toBe(true);
    for (const path of paths) {
      const [first, second] = path.split(".") as [string, string | undefined];
      expect([first, isRead(first, "settings")]).toEqual([first, true]);
      if (second) expect([path, isRead(second, first)]).toEqual([path, true]);
    }
  });

  const problems = (spec: Spec) =>
    withoutEffect({ apiVersion: "", kind: "DataplaneConfiguration", metadata: { name: "default" }, spec });

  it("what nothing acts on is reported", () => {
    const [problem] = problems({ bpfEnforceRPF: "Strict", bpfHostConntrackBypass: true, vxlanPort: 1 });
    expect(problem?.message).toMatch(/: bpfEnforceRPF, bpfHostConntrackBypass$/);
  });

  it("what asks for what happens anyway is not", () => {
    expect(problems({ bpfEnforceRPF: "Disabled", bpfHostConntrackBypass: false, floatingIPs: "Disabled" })).toEqual([]);
  });
});
