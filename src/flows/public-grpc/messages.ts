import { bytes, flag, int, ints, many, message, text } from "../../kit/grpc/protobuf.ts";

/** Field numbers of the public flow protocol, package `goldmane`. Numbers from 1001 on are ours: readers of the public schema skip them. */

const POLICY = { kind: int(1), namespace: text(2), name: text(3), tier: text(4) };
const HIT = { ...POLICY, action: int(5), policyIndex: int(6), ruleIndex: int(7), trigger: message(8, POLICY) };
const TRACE = { enforced: many(message(1, HIT)), pending: many(message(2, HIT)) };

export const FLOW_KEY = {
  sourceName: text(1),
  sourceNamespace: text(2),
  sourceType: int(3),
  destName: text(4),
  destNamespace: text(5),
  destType: int(6),
  destPort: int(7),
  serviceName: text(8),
  serviceNamespace: text(9),
  servicePortName: text(10),
  servicePort: int(11),
  protocol: text(12),
  reporter: int(13),
  action: int(14),
  policies: message(15, TRACE),
};

const MEASURED = {
  since: int(2),
  until: int(3),
  sourceLabels: many(text(4)),
  destLabels: many(text(5)),
  packetsIn: int(6),
  packetsOut: int(7),
  bytesIn: int(8),
  bytesOut: int(9),
  started: int(10),
  completed: int(11),
  live: int(12),
  dropReasons: many(text(1001)),
  planes: many(text(1002)),
  sourceAddresses: many(text(1003)),
  destAddresses: many(text(1004)),
  nodes: many(text(1005)),
  moreAddresses: flag(1006),
};
/** As clients send it. */
const FLOW = { key: message(1, FLOW_KEY), ...MEASURED };
/** As we send it: a key is encoded once, and stays with the flow. */
const ENCODED_FLOW = { key: bytes(1), ...MEASURED };

export const FLOW_RESULT = { id: int(1), flow: message(2, ENCODED_FLOW) };

export const TEXT_MATCH = { value: text(1), type: int(2) };
/** 3.31 has texts where 3.32 has a match: both are read. */
const POLICY_MATCH = { kind: int(1), tier: bytes(2), namespace: bytes(3), name: bytes(4), action: int(5) };
const FILTER = {
  sourceNames: many(message(1, TEXT_MATCH)),
  sourceNamespaces: many(message(2, TEXT_MATCH)),
  destNames: many(message(3, TEXT_MATCH)),
  destNamespaces: many(message(4, TEXT_MATCH)),
  protocols: many(message(5, TEXT_MATCH)),
  destPorts: many(message(6, { port: int(1) })),
  actions: ints(7),
  policies: many(message(8, POLICY_MATCH)),
  reporter: int(9),
  pendingActions: ints(10),
};

export const LIST_REQUEST = {
  since: int(1),
  until: int(2),
  page: int(3),
  pageSize: int(4),
  sortBy: many(message(5, { by: int(1) })),
  filter: message(6, FILTER),
  interval: int(7),
};
const PAGES = { totalPages: int(1), totalResults: int(2) };
export const LIST_RESULT = { meta: message(1, PAGES), flows: many(message(2, FLOW_RESULT)) };

export const STREAM_REQUEST = { since: int(1), filter: message(2, FILTER), interval: int(3) };

export const HINTS_REQUEST = {
  type: int(1),
  filter: message(2, FILTER),
  since: int(3),
  until: int(4),
  page: int(5),
  pageSize: int(6),
};
export const HINTS_RESULT = { meta: message(1, PAGES), hints: many(message(2, { value: text(1) })) };

export const STATISTICS_REQUEST = {
  since: int(1),
  until: int(2),
  type: int(3),
  groupBy: int(4),
  match: message(5, POLICY_MATCH),
  isSeries: flag(6),
};
export const STATISTICS_RESULT = {
  policy: message(1, HIT),
  direction: int(2),
  groupBy: int(3),
  type: int(4),
  allowedIn: ints(5),
  allowedOut: ints(6),
  deniedIn: ints(7),
  deniedOut: ints(8),
  passedIn: ints(9),
  passedOut: ints(10),
  times: ints(11),
};

export const FLOW_UPDATE = { flow: message(1, FLOW) };
export const FLOW_RECEIPT = {};

export const ACTION = { Allow: 1, Deny: 2, Pass: 3 } as const;
export const REPORTER = { Source: 1, Destination: 2 } as const;
export const END_TYPE = { Workload: 1, HostEndpoint: 2, NetworkSet: 3, Network: 4 } as const;
export const RULE_DIRECTION = { Any: 0, Ingress: 1, Egress: 2 } as const;

/** By our kind: the number, and the name it has in hints. */
export const POLICY_KINDS = {
  NetworkPolicy: { number: 1, hint: "CalicoNetworkPolicy" },
  GlobalNetworkPolicy: { number: 2, hint: "GlobalNetworkPolicy" },
  StagedNetworkPolicy: { number: 3, hint: "StagedNetworkPolicy" },
  StagedGlobalNetworkPolicy: { number: 4, hint: "StagedGlobalNetworkPolicy" },
  StagedKubernetesNetworkPolicy: { number: 5, hint: "StagedKubernetesNetworkPolicy" },
  KubernetesNetworkPolicy: { number: 6, hint: "NetworkPolicy" },
  AdminNetworkPolicy: { number: 7, hint: "ClusterNetworkPolicyAdminTier" },
  BaselineAdminNetworkPolicy: { number: 8, hint: "ClusterNetworkPolicyBaselineTier" },
  Profile: { number: 9, hint: "Profile" },
  EndOfTier: { number: 10, hint: "EndOfTier" },
  ClusterNetworkPolicy: { number: 11, hint: "ClusterNetworkPolicy" },
} as const;
