import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { definedCodes } from "../../../kit/errors.ts";
import { ERROR_SETS } from "../../error-sets.ts";
import { anchor } from "../../reference/markdown.ts";
import { vendorctl } from "../../testing/fake-context.ts";
import { explanationOf } from "./explain.run.ts";

describe("vendorctl explain", () => {
  it("tells what a code means in general, an example as it is printed, what to do, and what to read", async () => {
    expect((await vendorctl(["explain", "BAD_VALUE"])).out).toBe(
      [
        "code:        BAD_VALUE",
        "what:        A flag has a value that it does not take. Nothing was done.",
        'example:     error: --timeout cannot be "soon" [BAD_VALUE]',
        "fix:         use a duration such as 30s or 5m",
        "see:         docs/guide/vendorctl.md, docs/reference/errors.md#bad_value",
        "exit status: 64",
        "",
      ].join("\n"),
    );
  });

  it("tells what validation found, why it matters and which rule it comes from", async () => {
    const { out } = await vendorctl(["explain", "EBPF_NEEDS_KUBE_DATASTORE"]);
    expect(out).toMatch(/^code: EBPF_NEEDS_KUBE_DATASTORE\nwhat: .+\nwhy: {2}.+\nfix: {2}.+\nrule: .+\n$/);
  });

  it("knows what an API server may answer", async () => {
    expect((await vendorctl(["explain", "API_ALREADY_EXISTS"])).out).toContain("with the reason AlreadyExists");
    expect((await vendorctl(["explain", "API_CONFLICT"])).out).toContain("run the command again");
  });

  it("takes the code as it was printed, and in any case", async () => {
    expect((await vendorctl(["explain", "[timed_out]"])).out).toContain("error: not finished after 30s [TIMED_OUT]");
  });

  it("is JSON on request", async () => {
    const { out } = await vendorctl(["explain", "TIMED_OUT", "-o", "json"]);
    expect(JSON.parse(out)).toMatchObject({ code: "TIMED_OUT", fix: "use a longer --timeout", exitCode: 5 });
  });

  it("knows every set of errors in the project", () => {
    const source = new URL("../../../", import.meta.url);
    const declaring = readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((path) => /\.ts$/.test(path) && !/\.test\.ts$|^kit\/errors\.ts$/.test(path))
      .filter((path) => /\bdefineErrors\(/.test(readFileSync(new URL(path, source), "utf8")));
    expect(Object.keys(ERROR_SETS).sort()).toEqual(declaring.sort());
  });
});

describe("every code", async () => {
  await Promise.all(Object.values(ERROR_SETS).map((load) => load()));

  it.each(definedCodes())(
    "%s is explained without the placeholders of a template, by a page that exists",
    async (code) => {
      const { title = "", example = "", fix = "", see = "" } = (await explanationOf(code)) ?? {};
      expect(title).toMatch(/^(?:[A-Z]|kube-proxy|vendorctl|install|helm|kubectl|vendor|--).*\.$/);
      expect(`${title} ${example} ${fix}`).not.toMatch(/<[a-z][a-z ]*>|undefined|\[object/);
      expect(title).not.toBe(example);
      for (const page of see.split(", ")) {
        const [file = "", heading] = page.split("#");
        const text = readFileSync(new URL(`../../../../${file}`, import.meta.url), "utf8");
        const anchors = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => anchor(title));
        if (heading !== undefined) expect(anchors).toContain(heading);
      }
    },
  );
});
