import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startV3Api, type V3Api } from "../support/v3-api.ts";

/** What the v3 API fills in, what it refuses, and in which words. */

const V3 = "/apis/vendor.io/v3";

let api: V3Api;
beforeAll(async () => {
  api = await startV3Api();
});
afterAll(() => api.close());

const object = (kind: string, name: string, spec?: object) => ({
  apiVersion: "vendor.io/v3",
  kind,
  metadata: { name },
  ...(spec && { spec }),
});
const merge = (path: string, body: object) =>
  api.call("PATCH", `${V3}/${path}`, { body, type: "application/merge-patch+json" });

describe("what is left out", () => {
  it.each([
    ["tiers", object("Tier", "plain"), { order: 1_000_000, defaultAction: "Deny" }],
    [
      "ippools",
      object("IPPool", "six", { cidr: "fd00:10::/64" }),
      {
        cidr: "fd00:10::/64",
        blockSize: 122,
        vxlanMode: "Never",
        ipipMode: "Never",
        nodeSelector: "all()",
        allowedUses: ["Workload", "Tunnel"],
        assignmentMode: "Automatic",
      },
    ],
    [
      "globalnetworkpolicies",
      object("GlobalNetworkPolicy", "out", { egress: [{ action: "Allow" }] }),
      { tier: "default", types: ["Egress"], egress: [{ action: "Allow" }] },
    ],
    [
      "globalnetworkpolicies",
      object("GlobalNetworkPolicy", "both", { ingress: [{ action: "Deny" }], egress: [{ action: "Allow" }] }),
      { tier: "default", types: ["Ingress", "Egress"], ingress: [{ action: "Deny" }], egress: [{ action: "Allow" }] },
    ],
  ])("is filled in for %s", async (plural, given, spec) => {
    expect((await api.create(`${V3}/${plural}`, given)).body.spec).toEqual(spec);
  });

  it("follows what is applied: a policy that gets egress rules decides egress", async () => {
    const path = `${V3}/globalnetworkpolicies/applied`;
    const first = await api.apply("me", path, object("GlobalNetworkPolicy", "applied", { selector: "all()" }));
    expect(first.body.spec).toEqual({ selector: "all()", tier: "default", types: ["Ingress"] });
    const again = await api.apply("me", path, object("GlobalNetworkPolicy", "applied", { selector: "all()" }));
    expect(again.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
    const more = object("GlobalNetworkPolicy", "applied", { selector: "all()", egress: [{ action: "Allow" }] });
    expect((await api.apply("me", path, more)).body.spec.types).toEqual(["Egress"]);
  });
});

describe("what is wrong", () => {
  it("is a policy that would be left out whole with what it denies: doNotTrack", async () => {
    const raw = object("GlobalNetworkPolicy", "raw", { doNotTrack: true, applyOnForward: true });
    const { body } = await api.create(`${V3}/globalnetworkpolicies`, raw);
    expect([body.code, body.details.causes[0].field]).toEqual([422, "spec.doNotTrack"]);
    expect(body.details.causes[0].message).toMatch(
      /preDNAT with applyOnForward decides as early \[VALUE_WITHOUT_EFFECT\]/,
    );
  });

  it("is refused with every field at once, in Kubernetes' words and with a code to look up", async () => {
    const { body } = await api.create(
      `${V3}/hostendpoints`,
      object("HostEndpoint", "h", { node: "n", expectedIPs: ["10.0.0.300"], interfaceName: "far-too-long-a-name" }),
    );
    expect(body).toMatchObject({
      code: 422,
      reason: "Invalid",
      details: { group: "vendor.io", kind: "HostEndpoint", name: "h" },
    });
    expect(body.details.causes).toEqual([
      {
        reason: "FieldValueInvalid",
        field: "spec.interfaceName",
        message:
          'Invalid value: "far-too-long-a-name": "far-too-long-a-name" is not the name of an interface [INTERFACE_NAME_MALFORMED]',
      },
      {
        reason: "FieldValueInvalid",
        field: "spec.expectedIPs[0]",
        message: 'Invalid value: "10.0.0.300": "10.0.0.300" is not an IP address [ADDRESS_MALFORMED]',
      },
    ]);
  });

  it("is refused by type as a schema says it", async () => {
    const { body } = await api.create(`${V3}/tiers`, object("Tier", "typed", { order: "first" }));
    expect(body).toMatchObject({ code: 422, details: { causes: [{ field: "spec.order" }] } });
    expect(body.message).toContain('spec.order in body must be of type number: "string"');
  });

  it("is a selector nobody can read", async () => {
    const { body } = await api.create(
      `${V3}/globalnetworkpolicies`,
      object("GlobalNetworkPolicy", "sel", { selector: "role = 'db'" }),
    );
    expect(body.details.causes[0]).toMatchObject({
      field: "spec.selector",
      message: expect.stringContaining("[SELECTOR_MALFORMED]"),
    });
  });

  it("is a field nobody knows: dropped with a warning, or refused, or dropped, as the client asks", async () => {
    const odd = object("Tier", "odd", { order: 1, oder: 2 });
    const warned = await api.call("POST", `${V3}/tiers?dryRun=All`, { body: odd });
    expect(warned.headers.get("warning")).toContain('unknown field \\"spec.oder\\"');
    expect(warned.body.spec.oder).toBeUndefined();
    const strict = await api.call("POST", `${V3}/tiers?fieldValidation=Strict`, { body: odd });
    expect(strict.body.message).toBe(
      'Tier in version "vendor.io/v3" cannot be handled as a Tier: strict decoding error: unknown field "spec.oder"',
    );
    const ignored = await api.call("POST", `${V3}/tiers?dryRun=All&fieldValidation=Ignore`, { body: odd });
    expect([ignored.status, ignored.headers.get("warning")]).toEqual([201, null]);
    await api.create(`${V3}/tiers`, object("Tier", "odd"));
    const patched = await api.call("PATCH", `${V3}/tiers/odd?fieldValidation=Strict`, {
      body: { spec: { oder: 2 } },
      type: "application/merge-patch+json",
    });
    expect(patched.body.message).toContain('unknown field "spec.oder"');
  });

  it("is found in what a patch or an apply would make, before anything is stored", async () => {
    await api.create(`${V3}/tiers`, object("Tier", "kept", { order: 5 }));
    expect((await merge("tiers/kept", { spec: { defaultAction: "Maybe" } })).status).toBe(422);
    const policies = `${V3}/globalnetworkpolicies/never`;
    const applied = await api.apply("me", policies, object("GlobalNetworkPolicy", "never", { selector: "a = b" }));
    expect(applied.body).toMatchObject({ code: 422, details: { causes: [{ field: "spec.selector" }] } });
    expect((await api.get(policies)).status).toBe(404);
    const fixed = await merge("tiers/default", { spec: { order: 7 } });
    expect(fixed.body.details.causes[0]).toMatchObject({ field: "spec.order" });
    expect(fixed.body.message).toContain("[TIER_ORDER_FIXED]");
    expect((await api.get(`${V3}/tiers/kept`)).body.spec).toEqual({ order: 5, defaultAction: "Deny" });
  });
});

describe("an IP pool", () => {
  it("keeps its prefix and block size for life", async () => {
    await api.create(`${V3}/ippools`, object("IPPool", "life", { cidr: "10.20.0.0/16" }));
    const { body } = await merge("ippools/life", { spec: { cidr: "10.21.0.0/16", blockSize: 27, natOutgoing: true } });
    expect(body.message).toBe(
      'IPPool.vendor.io "life" is invalid: [spec.cidr: Invalid value: "10.21.0.0/16": field is immutable, spec.blockSize: Invalid value: 27: field is immutable]',
    );
    expect((await merge("ippools/life", { spec: { natOutgoing: true } })).status).toBe(200);
    const put = { ...(await api.get(`${V3}/ippools/life`)).body, spec: { cidr: "10.20.0.0/17" } };
    expect((await api.call("PUT", `${V3}/ippools/life`, { body: put })).status).toBe(422);
  });

  it("does not overlap another, which is named", async () => {
    await api.create(`${V3}/ippools`, object("IPPool", "wide", { cidr: "10.30.0.0/16" }));
    const { body } = await api.create(`${V3}/ippools`, object("IPPool", "inside", { cidr: "10.30.4.0/24" }));
    expect(body).toMatchObject({ code: 422, message: expect.stringContaining("(pool wide)") });
  });
});

describe("a field that this release does not carry", () => {
  const configured = object("DataplaneConfiguration", "node.one", { bpfAttachType: "TC", vxlanPort: 4790 });

  it.each(["Ignore", "Warn", "Strict"])("is refused by name, with validation %s", async (validation) => {
    const path = `${V3}/dataplaneconfigurations?fieldValidation=${validation}`;
    const { status, body } = await api.call("POST", path, { body: configured });
    expect(status).toBe(422);
    expect(body.details.causes).toMatchObject([{ field: "spec.bpfAttachType" }]);
    expect(body.message).toMatch(/This release does not carry spec.bpfAttachType: The kernel's version decides/);
  });

  it("is refused in a patch and in an apply, and the object stays as it was", async () => {
    const plain = object("DataplaneConfiguration", "node.two", { vxlanPort: 4790 });
    await api.create(`${V3}/dataplaneconfigurations`, plain);
    const patched = await merge("dataplaneconfigurations/node.two", { spec: { wireguardEnabled: true } });
    expect([patched.status, patched.body.message]).toEqual([422, expect.stringMatching(/Encrypt in the fabric/)]);
    const applied = await api.apply("me", `${V3}/dataplaneconfigurations/node.two`, {
      ...plain,
      spec: { bpfLogLevel: "Debug" },
    });
    expect([applied.status, applied.body.message]).toEqual([422, expect.stringMatching(/vendor node show/)]);
    expect((await api.call("GET", `${V3}/dataplaneconfigurations/node.two`)).body.spec).toEqual({ vxlanPort: 4790 });
  });

  it("is told from a typing error, which is dropped with a warning if the client does not ask for more", async () => {
    const misspelt = object("DataplaneConfiguration", "node.three", { vxlanPrt: 4790 });
    const { status } = await api.call("POST", `${V3}/dataplaneconfigurations`, { body: misspelt });
    expect(status).toBe(201);
  });
});
