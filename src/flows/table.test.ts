import { expect, it } from "vitest";
import type { FlowKey } from "../api/protocol/flow.ts";
import { flowKey, NOTHING, outside, policyHit, workload } from "./flow.fixture.ts";
import { parseQuery } from "./query/parse-query.ts";
import { FLOW_COLUMNS, type TableFlow } from "./table.ts";

function flow(key: Partial<FlowKey> = {}, some: Partial<TableFlow> = {}): TableFlow {
  return {
    ...NOTHING,
    id: "0123abcd",
    key: flowKey(key),
    sourceAddresses: [],
    destinationAddresses: [],
    more: false,
    lastSeen: Date.parse("2026-01-31T12:00:00.250Z"),
    ...some,
  };
}

function cells(some: TableFlow): Record<string, string> {
  return Object.fromEntries(FLOW_COLUMNS.map(({ name, text }) => [name, text(some)]));
}

it("has a text for every cell", () => {
  expect(FLOW_COLUMNS.filter(({ priority }) => priority === 0).map(({ name }) => name)).toEqual(
    "WHEN VERDICT FROM TO PORT DECIDED-BY BYTES CONNECTIONS".split(" "),
  );
  const denied = flow(
    {},
    {
      bytes: 81_234_567,
      started: 25,
      sourceAddresses: ["10.0.0.1", "10.0.0.2"],
      destinationAddresses: ["fd00::1"],
      more: true,
    },
  );
  expect(cells(denied)).toEqual({
    WHEN: "2026-01-31T12:00:00Z",
    VERDICT: "deny",
    FROM: "shop/web",
    TO: "pay/db",
    PORT: "5432/TCP",
    "DECIDED-BY": "pay/lock#ingress[2]",
    BYTES: "81.2MB",
    CONNECTIONS: "25",
    REASON: "policy_ingress",
    SERVICE: "pay/database:sql",
    PENDING: "-",
    NODE: "node-1",
    PLANE: "bpf",
    ADDRESSES: "10.0.0.1,10.0.0.2 > fd00::1 …",
    ID: "0123abcd",
  });
  const {
    reason: _reason,
    service: _service,
    ...rest
  } = flowKey({ from: outside, to: workload("shop", ""), protocol: "ICMP" });
  const allowed = { ...rest, port: 0, policies: [], verdict: "Allow", node: "" } as const;
  expect(cells({ ...flow(), key: allowed })).toMatchObject({
    FROM: "public",
    TO: "shop/*",
    PORT: "ICMP",
    "DECIDED-BY": "-",
    REASON: "-",
    SERVICE: "-",
    NODE: "-",
    ADDRESSES: "-",
  });
  expect(cells(flow({ port: 0 }))["PORT"]).toBe("*/TCP");
});

it("says what would happen if staged policies were enforced, and by which rule", () => {
  const staged = policyHit({ kind: "StagedNetworkPolicy", name: "soon", staged: true, action: "Deny" });
  expect(cells(flow({ verdict: "Allow", pending: { verdict: "Deny", policies: [staged] } }))["PENDING"]).toBe(
    "deny by pay/soon#ingress[2]",
  );
});

it.each([
  [[policyHit({ kind: "EndOfTier", name: "" })], "end of tier default"],
  [[policyHit({ kind: "Profile", name: "kns.shop", rule: 0 })], "profile kns.shop"],
  [[policyHit({ kind: "NoProfile", name: "" })], "no profile"],
  [[policyHit({ name: "", namespace: "" })], "NetworkPolicy of tier default"],
  [[policyHit({ name: "open", action: "Allow" })], "pay/open#ingress[2]"],
  [
    [policyHit({ action: "Allow", direction: "Egress", namespace: "", name: "all" }), policyHit({ action: "Log" })],
    "all#egress[2]",
  ],
])("says who decided (%#)", (policies, text) => {
  expect(cells(flow({ policies }))["DECIDED-BY"]).toBe(text);
});

it.each([
  [0, "0B"],
  [999, "999B"],
  [1_000, "1kB"],
  [1_234, "1.23kB"],
  [12_345, "12.3kB"],
  [99_960, "100kB"],
  [999_600, "1MB"],
  [2 ** 53, "9.01PB"],
])("%d bytes are %s, which a query takes", (bytes, text) => {
  expect(cells(flow({}, { replyBytes: bytes }))["BYTES"]).toBe(text);
  if (!text.endsWith("PB")) expect(() => parseQuery(`bytes:${text}`)).not.toThrow();
});

it("never prints what moves a cursor or forges a line", () => {
  const evil = "a\u001b[2J\r\nb\u202e\u0007\u009b";
  const some = flow(
    {
      from: workload(evil, evil),
      to: workload(evil, evil),
      protocol: evil,
      reason: evil,
      node: evil,
      service: { namespace: evil, name: evil, port: evil },
      policies: [policyHit({ namespace: evil, name: evil, tier: evil })],
    },
    { sourceAddresses: [evil], destinationAddresses: [evil] },
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be printed.
  for (const text of Object.values(cells(some))) expect(text).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/);
});
