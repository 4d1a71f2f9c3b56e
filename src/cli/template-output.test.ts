import { describe, expect, it } from "vitest";
import { formatJsonPath, formatTemplate } from "./template-output.ts";
import { DOCUMENT, TEMPLATES } from "./testing/template-rows.ts";

describe("-o jsonpath", () => {
  it.each(TEMPLATES)("%s", (template, printed) => expect(formatJsonPath(template, DOCUMENT)).toBe(printed));

  it.each([
    ["{.items[", "{ has no }"],
    [".kind}", "} has no {"],
    ["{.items[}", "cannot read it from"],
    ["{range .items[*]}x", "{range} has no {end}"],
    ["{.kind}{end}", "{end} has no {range}"],
    ["{metadata.name}", "{metadata.name} is neither a path such as {.metadata.name} nor range or end"],
    ['{.items[?(@.a=="b" && @.c)]}', "cannot compare with"],
  ])("%s is refused with one sentence", (template, why) => {
    expect(() => formatJsonPath(template, DOCUMENT)).toThrow(
      expect.objectContaining({ code: "OUTPUT_TEMPLATE_INVALID", message: expect.stringContaining(why) }),
    );
  });
});

describe("-o custom-columns", () => {
  const columns = (text: string, value: unknown = DOCUMENT) => formatTemplate({ form: "custom-columns", text }, value);

  it("prints a row for each item, and what kubectl prints for what is not there", async () => {
    const list = { items: [DOCUMENT, { kind: "Other", metadata: { name: "a-long-name" } }] };
    expect(await columns("NAME:.metadata.name,N:{.spec.n},READY:.spec.items[?(@.status)].name", list)).toBe(
      ["NAME          N        READY", "one           3        a,b", "a-long-name   <none>   <none>", ""].join("\n"),
    );
    expect(await columns("KIND:kind", [DOCUMENT])).toBe("KIND\nThing\n");
    expect(await columns("LABELS:.metadata.labels,TEXTS:.spec.texts")).toBe(
      "LABELS         TEXTS\nmap[app:web]   [a b c]\n",
    );
  });

  it.each([
    ["NAME", '"NAME" is not HEADER:PATH'],
    ["NAME:.metadata.name,", '"" is not HEADER:PATH'],
    ["NAME:.a[", "cannot read it from"],
  ])("%s is refused with one sentence", async (spec, why) => {
    const message = expect.stringContaining(why);
    await expect(columns(spec)).rejects.toMatchObject({ code: "OUTPUT_TEMPLATE_INVALID", message });
  });
});
