import fc from "fast-check";
import { QUERY_FIELD_NAMES, queryField } from "./fields.ts";

/** Texts that somebody may type, or send: of the grammar, nearly of it, and of nothing. */
export function anyQuery(): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: written.map((text) => text.slice(0, 4_096)) },
    { weight: 3, arbitrary: fc.tuple(written, fc.nat(), fc.oneof(fc.constantFrom(...SIGNS), oddText)).map(spoilt) },
    { weight: 2, arbitrary: fc.array(fc.constantFrom(...SIGNS), { maxLength: 60 }).map((signs) => signs.join("")) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 200 }) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("latin1")) },
    // As long as a query may be, made of what a careless pattern goes back in.
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...REPEATED), fc.integer({ min: 1, max: 5_000 })).map(repeated) },
  );
}

const SIGNS = [
  '"',
  "\\",
  "(",
  ")",
  "-",
  ",",
  ":",
  "*",
  "=",
  ">",
  "<",
  ">=",
  "/",
  "#",
  " ",
  "\n",
  " or ",
  " and ",
  "\0",
];
const REPEATED = ["*a", "a*,", "(", "-(", "a or ", "web ", '"*"', "port:1,", "label:a=*b ", "from:*/*a ", "9", "1h"];
const oddText = fc.constantFrom(
  "__proto__",
  "constructor",
  "\u202e",
  "\ud800",
  "🙂",
  "a".repeat(300),
  "9".repeat(40),
  "é",
);

const AMOUNTS = ["0", "1", "180", ">1kB", "<=2.5MiB", "10-1M", ">=0", "<1", "1e3", "-1", "99999999999999999999"];
const VALUES: Readonly<Record<string, readonly string[]>> = {
  pairs: ["shop/web", "web", "*", "pay/*", "*/d*b", "/public", "a/b/c", "lock#ingress[2]", "2", "database:sql"],
  names: ["shop", "pay", "*", "s*p", "default", "policy_*", "node-1", "*o*e*"],
  labels: ["app", "app=web", "app=*", "app=w*b", "=", "app==x", "*=x"],
  port: ["0", "5432", "80-90", ">1024", "<=80", "90-80", "65536", "http"],
  amount: AMOUNTS,
  addresses: ["10.0.0.0/8", "10.244.1.7", "fd00::/8", "10.0.0.1-10.0.0.9", "::ffff:1.2.3.4", "10.0.0.0/33", "1.2.3"],
  time: ["15m", "1h30m", "2d", "0s", "2026-01-31T12:00:00Z", "2026-13-01T00:00:00Z", "9999999999d", "m"],
};

const value = (kind: string, choices: readonly string[]) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...choices, ...(VALUES[kind] ?? [])) },
    { weight: 1, arbitrary: fc.string({ maxLength: 12 }).map((text) => `"${text.replace(/["\\]/g, "\\$&")}"`) },
    { weight: 1, arbitrary: fc.constantFrom(...Object.values(VALUES).flat()) },
  );

const fieldTerm = fc.constantFrom(...QUERY_FIELD_NAMES).chain((name) => {
  const field = queryField(name);
  const values = fc.array(value(field.kind, field.kind === "choice" ? field.choices : []), {
    minLength: 1,
    maxLength: 3,
  });
  return fc.tuple(values, fc.boolean()).map(([all, upper]) => `${upper ? name.toUpperCase() : name}:${all.join()}`);
});

const word = fc.constantFrom("web", "db", "w*", "*", "*a*b*", '"or"', '"a b"', "lock", "shop", "nothing");

const { query: written } = fc.letrec<{ query: string; term: string }>((tie) => ({
  term: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    word,
    fieldTerm,
    tie("query").map((query) => `(${query})`),
    tie("term").map((term) => `-${term}`),
  ),
  query: fc
    .tuple(
      fc.array(tie("term"), { minLength: 1, maxLength: 4 }),
      fc.constantFrom(" ", " ", "  ", " or ", " and ", " OR ", "\t"),
    )
    .map(([terms, between]) => terms.join(between)),
}));

/** One sign that is not where it belongs, put in or in place of another. */
function spoilt([text, place, sign]: [string, number, string]): string {
  const at = place % (text.length + 1);
  return text.slice(0, at) + sign + text.slice(at + (place % 2));
}

function repeated([piece, length]: [string, number]): string {
  return piece.repeat(Math.ceil(length / piece.length)).slice(0, length);
}
