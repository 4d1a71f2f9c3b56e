import { describe, expect, it } from "vitest";
import type { IPPool } from "../resources/ip-pool.ts";
import { ipPoolSetProblems, ipPoolUpdateProblems } from "./ip-pool.ts";

const pool = (name: string, spec: IPPool["spec"]): IPPool => ({
  apiVersion: "vendor.io/v3",
  kind: "IPPool",
  metadata: { name },
  spec,
});

describe("a pool's life", () => {
  it.each([
    [{ cidr: "10.0.0.0/16" }, { cidr: "10.0.0.0/16", natOutgoing: true }, []],
    [{ cidr: "10.0.0.0/16" }, { cidr: "10.0.0.0/16", blockSize: 26 }, []],
    [{ cidr: "10.0.0.0/16" }, { cidr: "10.1.0.0/16" }, ["spec.cidr"]],
    [{ cidr: "10.0.0.0/16", blockSize: 26 }, { cidr: "10.0.0.0/16", blockSize: 24 }, ["spec.blockSize"]],
    [{ cidr: "fd00::/64" }, { cidr: "fd01::/64", blockSize: 120 }, ["spec.cidr", "spec.blockSize"]],
  ])("%j to %j changes for ever: %j", (from, to, paths) => {
    const problems = ipPoolUpdateProblems(pool("a", from), pool("a", to));
    expect(problems.map(({ code, path }) => [code, path])).toEqual(paths.map((path) => ["POOL_FIELD_IMMUTABLE", path]));
  });

  it("is apart from the other pools", () => {
    const pools = [
      pool("a", { cidr: "10.0.0.0/16" }),
      pool("b", { cidr: "fd00::/64" }),
      pool("c", { cidr: "10.0.4.0/24" }),
    ];
    expect(ipPoolSetProblems(pools)).toMatchObject([
      { code: "POOLS_OVERLAP", message: "10.0.4.0/24 overlaps 10.0.0.0/16." },
    ]);
  });
});
