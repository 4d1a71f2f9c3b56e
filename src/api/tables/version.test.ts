import { describe, expect, it } from "vitest";
import { compareVersions, formatVersion, parseVersion, sameLine } from "./version.ts";
import { INSTALLED_RELEASE, supportsUpgrade, VERSION_GATES } from "./version-gates.ts";

describe("versions as people write them", () => {
  it.each([
    ["3.22.2", "v3.22.2"],
    ["v3.22.2", "v3.22.2"],
    ["v3.31", "v3.31"],
    [" v3.31.3 ", "v3.31.3"],
    ["v3.31.3-0.dev", "v3.31.3-0.dev"],
    ["3.31.0-rc1+build.7", "v3.31.0-rc1"],
  ])("%s is %s", (text, printed) => expect(formatVersion(parseVersion(text)!)).toBe(printed));

  it.each(["", "3", "v3", "latest", "v3.x", "3.31.3.1", "v3.31.", "v-3.31"])("%j is none", (text) =>
    expect(parseVersion(text)).toBeUndefined(),
  );

  it("are in order", () => {
    const order = [
      "v3.14.1",
      "v3.15",
      "v3.15.1",
      "v3.28.0",
      "v3.31.3-0.dev",
      "v3.31.3-alpha",
      "v3.31.3-alpha.2",
      "v3.31.3-alpha.10",
      "v3.31.3",
      "v3.31.10",
      "v4.0",
    ];
    const shuffled = [...order].reverse().map((text) => parseVersion(text)!);
    expect(shuffled.sort(compareVersions).map(formatVersion)).toEqual(order);
    expect(compareVersions(parseVersion("3.22.2")!, parseVersion("v3.22.2")!)).toBe(0);
  });

  it("belong to a line", () => {
    expect(sameLine(parseVersion("v3.31.9")!, parseVersion("v3.31")!)).toBe(true);
    expect(sameLine(parseVersion("v3.30.9")!, parseVersion("v3.31")!)).toBe(false);
  });
});

describe("what changes between two versions", () => {
  it.each([
    ["v3.15.0", "v3.31.3", ["resourceUids", "flowLogs", "target"]],
    ["v3.27.4", "v3.31.3", ["resourceUids", "flowLogs", "target"]],
    ["v3.28.0-0.dev", "v3.31.3", ["flowLogs", "target"]],
    ["v3.29.1", "v3.31.3", ["flowLogs", "target"]],
    ["v3.31.0", "v3.31.3", []],
  ])("%s to %s: %j", (from, to, gates) => expect(supportsUpgrade(from, to)).toMatchObject({ supported: true, gates }));

  it.each(Object.entries(VERSION_GATES))("gate %s says what it asks for and why", (_id, gate) => {
    expect(parseVersion(gate.version)).toBeDefined();
    expect(gate.consequence).toMatch(/\.$/);
    expect(gate.because).toMatch(/\.$/);
  });

  it("installs a release of the version it upgrades to", () => {
    expect(sameLine(parseVersion(INSTALLED_RELEASE)!, parseVersion(VERSION_GATES.target.version)!)).toBe(true);
  });
});

describe("which upgrades are supported", () => {
  it.each([
    ["v3.15.0", "v3.31.3", true],
    ["3.22.2", "v3.31", true],
    ["v3.31.1", "v3.31.3", true],
    ["v3.31.3", "v3.31.3", true],
    ["v3.31.3", "v3.31", true],
    ["v3.14.2", "v3.31.3", "UPGRADE_FROM_TOO_OLD"],
    ["v3.13", "v3.31.3", "UPGRADE_FROM_TOO_OLD"],
    ["v2.6", "v3.31.3", "UPGRADE_FROM_TOO_OLD"],
    ["v3.27.0", "v3.30.1", "UPGRADE_TARGET_UNKNOWN"],
    ["v3.27.0", "v3.32.0", "UPGRADE_TARGET_UNKNOWN"],
    ["v3.31.4", "v3.31.3", "UPGRADE_BACKWARDS"],
    ["v3.32.0", "v3.31.3", "UPGRADE_BACKWARDS"],
    ["latest", "v3.31.3", "UPGRADE_VERSION_UNREADABLE"],
    ["v3.27", "new", "UPGRADE_VERSION_UNREADABLE"],
  ])("%s to %s: %s", (from, to, expected) => {
    const answer = supportsUpgrade(from, to);
    expect(answer.supported ? true : answer.code).toBe(expected);
    if (!answer.supported)
      expect(answer).toMatchObject({ message: expect.stringMatching(/\.$/), fix: expect.any(String) });
  });
});
