import { expect, it } from "vitest";
import { formatPairs, formatTable } from "./printer.ts";

it("makes columns as wide as their widest cell, with no space at the end of a line", () => {
  const rows = [
    ["web", "1/1", ""],
    ["a-longer-name", "12/12", "x"],
  ];
  expect(formatTable({ columns: ["NAME", "READY", "NOTE"], rows })).toBe(
    "NAME            READY   NOTE\nweb             1/1\na-longer-name   12/12   x\n",
  );
});

it("says something instead of an empty table", () => {
  expect(formatTable({ columns: ["NAME"], rows: [], empty: "nothing here" })).toBe("nothing here\n");
  expect(formatTable({ columns: ["NAME"], rows: [] })).toBe("NAME\n");
});

it("lines up labels", () => {
  expect(
    formatPairs([
      ["a", "1"],
      ["longer", "2"],
    ]),
  ).toBe("a:      1\nlonger: 2\n");
});
