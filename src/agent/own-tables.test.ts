import { expect, it } from "vitest";
import { ModelCopy } from "../calc/model-copy.ts";
import { plainServicePort } from "../calc/testing/service-port.ts";
import { type NodeProblems, problemsTable, servicesTable } from "./own-tables.ts";

const SERVICE = plainServicePort({
  clusterBackends: [
    { address: "10.0.0.1", port: 8080, local: true, node: "here" },
    { address: "10.0.9.1", port: 8080, local: false, node: "there" },
  ],
});

it("the table of services says where each is asked, by which rules, and who answers", () => {
  const model = new ModelCopy();
  const local = [{ address: "fd00::1", port: 8080, local: true, node: "here" }];
  for (const service of [
    SERVICE,
    {
      ...{ ...SERVICE, id: "shop/web:http/tcp/6", family: 6 as const, clusterAddress: "fd96::a" },
      ...{ loadBalancerAddresses: ["2001:db8::7"], sourceRanges: [], nodePort: 30_080, affinitySeconds: 30 },
      ...{ healthCheckNodePort: 32_000, healthCheckBackends: 1, internalLocal: true, externalLocal: true },
      ...{ clusterBackends: local, localBackends: local },
    },
    { ...SERVICE, id: "shop/gone:/udp/4", protocol: 17 as const, clusterBackends: [], anyBackends: false },
  ])
    model.services.set(service.id, service);
  expect(servicesTable(model)).toEqual({
    columns: ["service", "addresses", "node port", "rules", "backends", "local backends"],
    rows: [
      ["shop/gone:/udp/4", "10.96.0.10:80", "-", "refused: no backends", "-", "-"],
      ["shop/web:http/tcp/4", "10.96.0.10:80", "-", "-", "10.0.0.1:8080* 10.0.9.1:8080", "-"],
      [
        "shop/web:http/tcp/6",
        "[fd96::a]:80 [2001:db8::7]:80",
        "30080",
        "inside: local, outside: local, affinity 30s, balancer only for none, health at 32000: 1",
        "[fd00::1]:8080*",
        "[fd00::1]:8080*",
      ],
    ],
  });
});

const NONE: NodeProblems = {
  model: new ModelCopy(),
  failed: [],
  fill: [],
  limited: [],
  conflicts: [],
  losses: [],
  refused: [],
  own: [],
};

it("the table of problems names maps that are full, and none that are not", () => {
  const fill = [
    { map: "flows", entries: 999_700, max: 1_000_000 },
    { map: "affinities", entries: 40_000, max: 65_536 },
  ];
  expect(problemsTable({ ...NONE, fill }).rows).toEqual([
    ["map flows", "AGENT_MAP_FULL", "BPF map flows has 999700 of at most 1000000 entries"],
  ]);
});

it("the table of problems names the pod that fills a connection table", () => {
  const limited = [{ id: "shop/loader", table: "conntrack" as const, entries: 249_990, limit: 250_000 }];
  expect(problemsTable({ ...NONE, limited }).rows).toEqual([
    [
      "pod shop/loader",
      "WORKLOAD_CONNTRACK_LIMIT",
      "pod shop/loader has 249990 of at most 250000 entries in conntrack of this node: new connections that it opens are dropped",
    ],
  ]);
});

it("the table of problems names a pod whose address is allocated to another", () => {
  const conflicts = [{ address: "10.0.0.7", pod: "shop/web", allocatedTo: "pod shop/late" }];
  expect(problemsTable({ ...NONE, conflicts }).rows).toEqual([
    ["pod shop/web", "IPAM_ADDRESS_CONFLICT", "pod shop/web has address 10.0.0.7, which is allocated to pod shop/late"],
  ]);
});
