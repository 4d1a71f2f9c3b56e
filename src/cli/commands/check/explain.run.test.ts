import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ERROR_SETS } from "../../error-sets.ts";
import { vendorctl } from "../../testing/fake-context.ts";
import { sentenceOf } from "./sentence-of.ts";

describe("vendorctl explain", () => {
  it("tells what a code means, with the parts that vary named", async () => {
    expect((await vendorctl(["explain", "BAD_VALUE"])).out).toBe(
      'code:        BAD_VALUE\nwhat:        <flag> cannot be "<value>"\nfix:         use <expected>\nexit status: 64\n',
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
    expect((await vendorctl(["explain", "[timed_out]"])).out).toContain("not finished after <timeout>");
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

describe("the sentence of an error nobody has met", () => {
  it.each([
    [(port: number) => `port ${port} is in use`, ["port"], "port <port> is in use"],
    [() => "interrupted", undefined, "interrupted"],
    [(a: string, _b: string) => `${a} is gone`, ["node name", "why"], "<node name> is gone"],
    [(names: string[]) => `one of ${names.join(", ")}`, ["names"], "one of <names>"],
  ])("%s", (say, args, sentence) => {
    expect(sentenceOf(say, args)).toBe(sentence);
  });
});
