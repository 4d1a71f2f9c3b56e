import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const ROOT = new URL("../../", import.meta.url);

/** Every page of the documentation that a text of the product names, with the heading if it names one. */
const CITED = [
  ...new Set(
    readdirSync(new URL("src/", ROOT), { recursive: true, encoding: "utf8" })
      .filter((path) => /\.ts$/.test(path) && !/\.test\.ts$/.test(path))
      .flatMap(
        (path) => readFileSync(new URL(`src/${path}`, ROOT), "utf8").match(/docs\/guide\/[\w-]+\.md(#[\w-]+)?/g) ?? [],
      ),
  ),
].sort();

/** As the host of the repository makes anchors of headings. */
function anchorsOf(page: string): string[] {
  return [...readFileSync(new URL(page, ROOT), "utf8").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .trim()
      .replace(/\s+/g, "-"),
  );
}

it.each(CITED)("%s is a page that users have", (citation) => {
  const [page = "", anchor] = citation.split("#");
  expect(existsSync(new URL(page, ROOT)), page).toBe(true);
  if (anchor !== undefined) expect(anchorsOf(page)).toContain(anchor);
});

it("cites no document that users do not have", () => {
  const texts = readdirSync(new URL("src/", ROOT), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.ts$/.test(path) && !/\.test\.ts$/.test(path))
    .flatMap(
      (path) =>
        readFileSync(new URL(`src/${path}`, ROOT), "utf8").match(
          /["`](?:Install \d|Upgrade rule \d|Versioning \d|Errors \d)[^"`]*["`]/g,
        ) ?? [],
    );
  expect(texts).toEqual([]);
});
