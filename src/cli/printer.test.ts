import { expect, it } from "vitest";
import { formatPairs, formatTable, print, wrapped } from "./printer.ts";
import type { Session } from "./session.ts";

it("makes columns as wide as their widest cell, with no space at the end of a line", async () => {
  const rows = [
    ["web", "1/1", ""],
    ["a-longer-name", "12/12", "x"],
  ];
  expect(await formatTable({ columns: ["NAME", "READY", "NOTE"], rows })).toBe(
    "NAME            READY   NOTE\nweb             1/1\na-longer-name   12/12   x\n",
  );
});

it("says something instead of an empty table", async () => {
  expect(await formatTable({ columns: ["NAME"], rows: [], empty: "nothing here" })).toBe("nothing here\n");
  expect(await formatTable({ columns: ["NAME"], rows: [] })).toBe("NAME\n");
});

it("lines up labels", async () => {
  expect(
    await formatPairs([
      ["a", "1"],
      ["longer", "2"],
    ]),
  ).toBe("a:      1\nlonger: 2\n");
});

const wide = {
  columns: ["STEP", "WHAT", "WHERE"],
  rows: [
    ["1", "Apply the CRDs", "operator-crds.yaml of the release that this tool came with, sha256:0123456789ab"],
    ["2", "Wait", "DaemonSet vendor-system/vendor-node"],
  ],
};

it.each([40, 60, 80])("wraps long cells in their column, so that nothing is wider than %s columns", async (width) => {
  const lines = (await formatTable(wide, width)).trimEnd().split("\n");
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
  expect(lines.join(" ").replace(/\s+/g, " ")).toContain("vendor-system/vendor-node");
  expect(lines.length).toBeGreaterThan(3);
});

it("keeps a row on one line in a pipe, however long it is", async () => {
  expect((await formatTable(wide)).trimEnd().split("\n")).toHaveLength(3);
});

it("counts the columns a sign takes, not its bytes", async () => {
  const rows = [
    ["網路", "x"],
    ["ab", "y"],
  ];
  expect(await formatTable({ columns: ["N", "M"], rows })).toBe("N      M\n網路   x\nab     y\n");
});

it("keeps data from forging rows and from steering the terminal", async () => {
  const rows = [["a\nb\x1b[2J", "\u202etxt"]];
  expect(await formatTable({ columns: ["NAME", "NOTE"], rows })).toBe(
    "NAME            NOTE\na\\nb\\u001b[2J   \\u202etxt\n",
  );
});

it("breaks a command so that it can still be pasted, and a sentence at its words", async () => {
  const command = 'kubectl patch installation default --type merge -p \'{"spec": {"a": 1}}\'';
  const lines = await wrapped(command, { first: "fix: ", width: 50 });
  expect(lines.every((line) => line.length <= 50)).toBe(true);
  expect(lines.map((line) => line.slice(5).replace(/ \\$/, "").trim()).join(" ")).toBe(command);
  expect(await wrapped("one two three four", { first: "fix: ", width: 14 })).toEqual([
    "fix: one two",
    "     three",
    "     four",
  ]);
});

it("leaves optional columns out, in their order, where the table does not fit", async () => {
  const table = {
    columns: ["STEP", "ID", "WHAT", "AT"],
    rows: [["1", "apply-crds", "Apply the CRDs", "2026-01-01T00:00:00Z"]],
    optional: ["ID", "AT"],
  };
  const heads = async (width?: number) => (await formatTable(table, width)).split("\n")[0]?.split(/ +/);
  expect(await heads()).toEqual(["STEP", "ID", "WHAT", "AT"]);
  expect(await heads(60)).toEqual(["STEP", "ID", "WHAT", "AT"]);
  expect(await heads(50)).toEqual(["STEP", "WHAT", "AT"]);
  expect(await heads(30)).toEqual(["STEP", "WHAT"]);
});

it.each([
  ["vendorctl resume", true],
  ["vendorctl resume   # or: vendorctl rollback, vendorctl abort", true],
  ["vendorctl check --for upgrade && vendorctl upgrade", true],
  [`kubectl patch installation default --type merge -p '{"spec": {"a": 1}}'`, true],
  ["vendorctl resume, or vendorctl rollback", false],
  ["vendorctl upgrade, which saves them", false],
  ["check the load balancer", false],
])("%s: broken as a command that a shell takes: %s", async (line, is) => {
  const [first] = await wrapped(line, { first: "", width: 12 });
  expect(first?.endsWith(" \\")).toBe(is);
});

it("breaks a command so that it can be pasted, its comment behind it, and a sentence at its words", async () => {
  const width = 40;
  expect(
    await wrapped("vendorctl rollback --run switch-0123   # or: vendorctl abort", { first: "fix: ", width }),
  ).toEqual(["fix: vendorctl rollback --run \\", "       switch-0123", "     # or: vendorctl abort"]);
  expect(
    await wrapped("vendorctl resume, or vendorctl rollback with another --to-step", { first: "fix: ", width }),
  ).toEqual(["fix: vendorctl resume, or vendorctl", "     rollback with another --to-step"]);
});

it("-o wide has every column whatever the terminal is like, and -o name the first of each row alone", async () => {
  const printed = async (output: "wide" | "name" | "table") => {
    let text = "";
    const session = {
      flags: { output },
      config: { outColumns: 40 },
      out: (more: string) => {
        text += more;
      },
    };
    await print(session as unknown as Session, {}, () => ({ ...wide, optional: ["WHERE"], empty: "nothing" }));
    return text;
  };
  expect(await printed("wide")).toBe(await formatTable(wide));
  expect(await printed("name")).toBe("1\n2\n");
  expect(await printed("table")).not.toContain("WHERE");
});
