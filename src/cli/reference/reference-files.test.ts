import { readdirSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { RESOURCES } from "../../api/resources/all.ts";
import { EXPLANATIONS } from "../../api/validation/explain.ts";
import { definedCodes } from "../../kit/errors.ts";
import { CHECKS } from "../../procedures/checks/all.ts";
import { table } from "./markdown.ts";
import { renderGeneratedFiles } from "./reference-files.ts";

describe("the printed reference", () => {
  let files: Record<string, string>;
  const page = (name: string) => files[`docs/reference/${name}`] ?? "";

  beforeAll(async () => {
    files = await renderGeneratedFiles();
  });

  it("has every metric that is declared anywhere in the sources", () => {
    const source = new URL("../../", import.meta.url);
    const declared = readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts") && !path.startsWith("cli/reference/"))
      .flatMap((path) => [
        ...readFileSync(new URL(path, source), "utf8").matchAll(
          /\.(?:counter|gauge|histogram)\(\s*"(vendor_[a-z_]+)"/g,
        ),
      ])
      .map(([, name]) => name as string);
    expect(declared.length).toBeGreaterThan(20);
    expect(declared.filter((name) => !page("metrics.md").includes(`\`${name}\``))).toEqual([]);
  });

  it("calls what only grows a counter, by its name, too", () => {
    const rows = [...page("metrics.md").matchAll(/^\| `(\S+)` \| (\w+) \|/gm)];
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter(([, name, type]) => name?.endsWith("_total") !== (type === "counter"))).toEqual([]);
    expect(page("metrics.md")).toContain("| `vendor_node_packets_total` | counter |");
  });

  it("has every code: errors, validation and checks", () => {
    const known = [...definedCodes(), ...Object.keys(EXPLANATIONS), ...CHECKS.map(({ code }) => code)];
    const headings = new Set(
      [...`${page("errors.md")}${page("checks.md")}`.matchAll(/^##+ ([A-Z0-9_]+)$/gm)].map(([, code]) => code),
    );
    expect(known.filter((code) => !headings.has(code))).toEqual([]);
  });

  it("shows an error as an example of it, and nothing as a tag that GitHub would drop", () => {
    expect(page("errors.md")).toContain('- Example: `error: --timeout cannot be "soon" [BAD_VALUE]`');
    expect(page("errors.md")).not.toMatch(/[^\\`]<[a-z ]+>/);
  });

  it("has a page for each resource, with fields, defaults and what is required", () => {
    expect(Object.keys(files).filter((path) => path.includes("/resources/"))).toHaveLength(RESOURCES.length + 2);
    expect(page("resources/ippool.md")).toContain("| `spec.cidr` *required* | string |");
    expect(page("resources/ippool.md")).toContain("26 for IPv4, 122 for IPv6");
    expect(page("resources/installation.md")).toContain("| `spec.controlPlaneReplicas` | integer, at least 1 | 2 |");
    expect(page("resources/networkpolicy.md")).toContain("list of [rules](rule.md)");
  });

  it("lists fields that are refused apart from those there are, with what to do instead", () => {
    const [fields = "", refused = ""] = page("resources/dataplaneconfiguration.md").split("## Refused fields");
    expect(fields).toContain("spec.vxlanPort");
    expect(fields).toMatch(/spec\.floatingIPs.*only `Disabled` is possible/);
    expect(refused).toContain("spec.bpfPSNATPorts");
    expect(refused).toMatch(/spec\.wireguardEnabled.*Encrypt in the fabric/);
  });

  it("has every command with its flags and defaults, and no hidden one", () => {
    expect(page("cli.md")).toContain("## vendorctl cluster up\n");
    expect(page("cli.md")).toMatch(/\| `--nodes <count>` \| `3` \|/);
    expect(page("cli.md")).toContain("## vendor node show\n");
    expect(page("cli.md")).not.toContain("vendorctl complete ");
  });
});

describe("a table", () => {
  it("leaves out columns that are empty, and keeps cells on one line", () => {
    expect(table(["A", "B"], [["x|y", ""]])).toBe("| A |\n| --- |\n| x\\|y |\n");
    expect(table(["A"], [["one\ntwo"]])).toBe("| A |\n| --- |\n| one two |\n");
  });
});
