import { describe, expect, it } from "vitest";
import type { FlowKey } from "../../api/protocol/flow.ts";
import { CodedError } from "../../kit/errors.ts";
import { flowKey, NOTHING, outside, workload } from "../flow.fixture.ts";
import { compileQuery } from "./compile-query.ts";
import { completions } from "./completions.ts";
import { pendingVerdict, QUERY_FIELD_NAMES, type QueriedFlow } from "./fields.ts";
import { type FlowQueryError, parseQuery } from "./parse-query.ts";
import { timeOf } from "./query.ts";

function flow(key: Partial<FlowKey> = {}, some: Partial<QueriedFlow> = {}): QueriedFlow {
  return {
    ...NOTHING,
    key: flowKey(key),
    sourceAddresses: ["10.244.1.7"],
    destinationAddresses: ["fd00::9"],
    ...some,
  };
}

function matches(query: string, some: QueriedFlow = flow()): boolean {
  return compileQuery(parseQuery(query)).matches(some);
}

function problemOf(query: string): FlowQueryError {
  try {
    parseQuery(query);
  } catch (error) {
    return error as FlowQueryError;
  }
  throw new Error(`${query} was read`);
}

describe("each field finds shop/web -> pay/db, and misses what is different", () => {
  const busy = flow({}, { bytes: 1_500_000, replyBytes: 500_000, packets: 900, replyPackets: 100, started: 25 });
  it.each([
    [
      "from",
      ["from:shop/web", "from:shop/*", "from:web", "from:w*b", "FROM:SHOP/Web"],
      ["from:pay/db", "from:shop", "from:shop/w"],
    ],
    ["to", ["to:pay/db", "to:*/db", "to:x,db"], ["to:web", "to:/db"]],
    ["either", ["either:shop/web", "either:pay/*"], ["either:kube-system/*"]],
    ["namespace", ["namespace:shop", "namespace:p*"], ["namespace:web"]],
    [
      "from.label",
      ["from.label:app=web", "from.label:app", "from.label:app=w*"],
      ["from.label:app=db", "from.label:ap"],
    ],
    ["to.label", ["to.label:app=db"], ["to.label:app=web"]],
    ["label", ["label:app=web", "label:app=db", 'label:"app=db"'], ["label:app=x", "label:App=db"]],
    [
      "service",
      ["service:pay/database", "service:database", "service:database:sql", "service:pay/data*"],
      ["service:web", "service:pay*"],
    ],
    [
      "port",
      ["port:5432", "port:5000-6000", "port:>1024", "port:80,5432", "port:<=5432"],
      ["port:80", "port:<5432", "port:>5432"],
    ],
    ["proto", ["proto:tcp", "proto:TCP", "proto:6"], ["proto:udp", "proto:17", "proto:47"]],
    ["verdict", ["verdict:deny", "verdict:allow,deny"], ["verdict:allow"]],
    ["pending", ["pending:deny"], ["pending:allow"]],
    ["reason", ["reason:policy_ingress", "reason:policy*"], ["reason:no_route"]],
    ["policy", ["policy:pay/lock", "policy:lock", "policy:*/l*"], ["policy:shop/lock"]],
    ["tier", ["tier:default"], ["tier:security"]],
    ["rule", ["rule:pay/lock#ingress[2]", "rule:2", "rule:lock#*"], ["rule:1", "rule:lock#egress[2]"]],
    ["reporter", ["reporter:destination"], ["reporter:source", "reporter:both"]],
    ["node", ["node:node-1", "node:node-*"], ["node:node-2"]],
    ["plane", ["plane:bpf", "plane:ebpf"], ["plane:nftables"]],
    [
      "address",
      ["address:10.0.0.0/8", "address:10.244.1.7", "address:fd00::/64", "address:10.244.1.1-10.244.1.9"],
      ["address:10.244.1.8", "address:::/1", "address:11.0.0.0/8"],
    ],
    [
      "bytes",
      ["bytes:>1MB", "bytes:2MB", "bytes:1.5MB-1GiB", "bytes:>=2000kB", "bytes:<2000001"],
      ["bytes:>2MB", "bytes:<2MB"],
    ],
    ["packets", ["packets:1k", "packets:>10"], ["packets:<1000", "packets:1001-2k"]],
    ["connections", ["connections:25", "connections:>24"], ["connections:>25"]],
    ["words", ["web", "HOP", "databas", "lock", "w*b", '"web"', "web db"], ["nothing", "w*x", '"w*b"', "web nothing"]],
    [
      "logic",
      ["-to:web", "web or nothing", "(nothing or web) -port:80", "-(x or nothing)", "web and db", "", " "],
      ["-web", "-(web or x)", "nothing or also"],
    ],
  ])("%s", (_field, found, missed) => {
    for (const query of found) expect(matches(query, busy), query).toBe(true);
    for (const query of missed) expect(matches(query, busy), query).toBe(false);
  });

  it("has a row above for every field", () => {
    expect(QUERY_FIELD_NAMES).toHaveLength(25);
  });

  it("reads what has no namespace as an empty one", () => {
    expect(matches("from:/public", flow({ from: outside }))).toBe(true);
    expect(matches('namespace:""', flow({ from: outside }))).toBe(true);
    expect(matches('namespace:""')).toBe(false);
  });

  it("decides by the key where counts cannot change the answer", () => {
    const key = flowKey();
    const known = (query: string) => compileQuery(parseQuery(query)).matchesKey(key);
    expect(known("from:web")).toBe(true);
    expect(known("from:web bytes:>1")).toBeUndefined();
    expect(known("from:db bytes:>1")).toBe(false);
    expect(known("from:web or bytes:>1")).toBe(true);
    expect(known("-bytes:>1")).toBeUndefined();
  });
});

describe("the time", () => {
  const now = Date.parse("2026-01-31T12:00:00Z");
  it.each([
    ["since:15m", "2026-01-31T11:45:00Z"],
    ["since:1h30m", "2026-01-31T10:30:00Z"],
    ["since:2d", "2026-01-29T12:00:00Z"],
    ["since:2026-01-30T01:02:03Z", "2026-01-30T01:02:03Z"],
    ["web since:2026-01-30T01:02:03+01:00 db", "2026-01-30T00:02:03Z"],
  ])("%s", (query, time) => {
    const { since, until } = parseQuery(query);
    expect(new Date(timeOf(since!, now)).toISOString()).toBe(new Date(time).toISOString());
    expect(until).toBeUndefined();
  });

  it("stands next to conditions and is none", () => {
    expect(matches("since:15m until:5m web")).toBe(true);
    expect(matches("since:15m nothing")).toBe(false);
  });
});

describe("a query that cannot be read", () => {
  it.each([
    ["prot:tcp", 0, '"prot"', "port"],
    ["web verdict:denny", 12, '"denny"', "deny"],
    ["verdict=deny", 7, '"="', "verdict:deny"],
    ["port:80000", 5, '"80000"', undefined],
    ["port:90-80", 5, '"90-80"', undefined],
    ["port:", 5, "the end", undefined],
    ["from:a,", 7, "the end", undefined],
    ["(web", 4, "the end", undefined],
    ["web)", 3, '")"', undefined],
    ["()", 1, '")"', undefined],
    ["web or", 6, "the end", undefined],
    ["or web", 0, '"o"', undefined],
    ["web - db", 5, '" "', undefined],
    ["--web", 1, '"-"', undefined],
    ['to:"db', 3, '"\\"db"', undefined],
    ["a,b", 1, '","', undefined],
    ["not web", 0, '"not"', undefined],
    ["10.0.0.1:80", 8, '":"', undefined],
    ["bytes:>1XB", 6, '">1XB"', undefined],
    ["address:10.0.0.300", 8, '"10.0.0.300"', undefined],
    ["since:yesterday", 6, '"yesterday"', undefined],
    ["since:1h since:2h", 9, '"since"', undefined],
    ["web or since:1h", 7, '"since"', undefined],
    ["-since:1h", 1, '"since"', undefined],
    ["label:a*=b", 6, '"a*=b"', undefined],
    [`${"(".repeat(17)}a${")".repeat(17)}`, 16, '"("', undefined],
    ["a".repeat(5_000), 4_096, '"a"', undefined],
  ])("case %#", (query, position, found, nearest) => {
    const error = problemOf(query);
    expect(error).toBeInstanceOf(CodedError);
    expect(error.code).toBe("FLOW_QUERY_BAD");
    expect(error.problem).toMatchObject({ position, found, ...(nearest && { nearest }) });
    expect(error.message).toContain(`at character ${position + 1}: found ${found}, expected `);
    expect(error.problem.nearest).toBe(nearest);
    if (nearest) expect(error.message).toContain(`did you mean "${nearest}"?`);
  });

  it("counts characters as people do", () => {
    expect(problemOf("🙂 prot:tcp").message).toContain("at character 3:");
    expect(problemOf("🙂 prot:tcp").problem.position).toBe(3);
  });

  it("is short however long what was found is", () => {
    expect(problemOf(`port:${"x".repeat(3_000)}`).message.length).toBeLessThan(250);
  });
});

it("what staged policies would have done is a verdict of its own; without one it is what happened", () => {
  const key = flowKey({ verdict: "Allow" });
  expect(pendingVerdict(key)).toBe("Allow");
  expect(pendingVerdict({ ...key, pending: { verdict: "Deny", policies: [] } })).toBe("Deny");
});

describe("completion", () => {
  const texts = (query: string, at = query.length) => completions(query, at).choices.map(({ text }) => text);

  it("offers fields, then the values of those that have a list", () => {
    expect(texts("")).toEqual(QUERY_FIELD_NAMES.map((name) => `${name}:`));
    expect(texts("web (ver")).toEqual(["verdict:"]);
    expect(texts("-to.")).toEqual(["to.label:"]);
    expect(texts("verdict:")).toEqual(["allow", "deny"]);
    expect(texts("verdict:allow,d")).toEqual(["deny"]);
    expect(texts("proto:i web", 7)).toEqual(["icmp", "icmpv6"]);
  });

  it("says what it replaces, and where the store must be asked", () => {
    expect(completions("from:shop/w to:db", 11)).toEqual({
      from: 5,
      to: 11,
      choices: [],
      hints: { field: "from", prefix: "shop/w" },
    });
    expect(completions("verd:deny", 2)).toMatchObject({ from: 0, to: 5 });
    expect(completions('to:"a b', 7).hints).toEqual({ field: "to", prefix: "a b" });
  });
});

it.each([
  ["globs", `from:${"*a".repeat(2_000)}b`],
  ["words", "a ".repeat(64)],
  ["globs in words", `${"*a".repeat(30)}*b `.repeat(64)],
  ["values", `namespace:${`${"a*".repeat(30)},`.repeat(63)}a`],
  ["labels", `label:${`a=${"*a".repeat(28)}*b,`.repeat(63)}a`],
  ["addresses", `address:${"fd00::/8,".repeat(63)}fe80::1`],
])("%s that a pattern with a way back would take for ever are answered", (_name, query) => {
  const name = "a".repeat(253);
  const some = flow({ from: workload(name, name, { a: "a".repeat(63) }), to: workload(name, name), policies: [] });
  expect(typeof matches(query, some)).toBe("boolean");
  expect(problemOf("(".repeat(4_096)).problem.position).toBe(16);
  // Each is compared with every flow: 2,000 words, and 20,000 flows would keep the server for half a minute.
  expect(problemOf("a ".repeat(2_000)).message).toContain("expected at most 64 words and values");
  expect(problemOf(`port:1${",2".repeat(64)}`).problem.position).toBe(133);
});
