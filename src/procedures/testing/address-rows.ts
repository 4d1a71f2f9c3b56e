import { acting, address, endpointMap, good, operator, proof, type Row, running } from "./checked-clusters.ts";
import { type Differently, node } from "./observed.ts";

/** A wrong endpoint map, by the rule it breaks. */
const mapRow = (code: string, host: unknown, port: unknown = "6443", wrong: Differently = {}): Row => ({
  code,
  for: "running",
  as: "fail",
  wrong: { ...address(host, port), ...wrong },
  fine: good,
  names: "",
});

export const ADDRESS_ROWS: readonly Row[] = [
  {
    code: "ENDPOINT_MAP_MISSING",
    for: "running",
    as: "fail",
    like: { kind: { detected: "eks" } },
    wrong: { service: acting() },
    fine: address("demo.eks.internal", "443"),
    names: "orchestrator-services-endpoint",
  },
  {
    code: "ENDPOINT_MAP_MISPLACED",
    for: "running",
    as: "fail",
    wrong: {
      service: {
        ...acting(),
        endpointMap: endpointMap(
          { ORCHESTRATOR_SERVICE_HOST: "api.demo.internal", ORCHESTRATOR_SERVICE_PORT: "6443" },
          { namespace: "default" },
        ),
      },
    },
    fine: good,
    names: "vendor-operator",
  },
  {
    code: "ENDPOINT_KEY_MISSING",
    for: "running",
    as: "fail",
    wrong: { service: { ...acting(), endpointMap: endpointMap({ ORCHESTRATOR_SERVICE_HOST: "api.demo.internal" }) } },
    fine: good,
    names: "ORCHESTRATOR_SERVICE_PORT",
  },
  {
    code: "ENDPOINT_KEY_UNKNOWN",
    for: "running",
    as: "fail",
    wrong: { service: { ...acting(), endpointMap: endpointMap({ KUBERNETES_SERVICE_HOST: "api.demo.internal" }) } },
    fine: good,
    names: "KUBERNETES_SERVICE_HOST",
  },
  mapRow("ENDPOINT_VALUE_NOT_TEXT", "api.demo.internal", 6443),
  mapRow("ENDPOINT_HOST_EMPTY", " "),
  mapRow("ENDPOINT_HOST_HAS_SCHEME", "https://api.demo.internal"),
  mapRow("ENDPOINT_HOST_HAS_PORT", "api.demo.internal:6443"),
  mapRow("ENDPOINT_HOST_MALFORMED", "api demo"),
  mapRow("ENDPOINT_HOST_LOOPBACK", "localhost"),
  mapRow("ENDPOINT_HOST_CLUSTER_IP", "10.96.0.1"),
  mapRow("ENDPOINT_HOST_DYNAMIC", "10.0.0.9", "6443", {
    nodes: [node("cp", { controlPlane: true, addresses: ["10.0.0.9"], addressAssignment: "dynamic" })],
  }),
  mapRow("ENDPOINT_HOST_ONE_OF_MANY", "10.0.0.9", "6443", {
    apiAddress: {
      servers: [
        { address: "10.0.0.9", port: 6443 },
        { address: "10.0.0.8", port: 6443 },
      ],
    },
  }),
  {
    ...mapRow("ENDPOINT_HOST_NOT_FOR_KIND", "api.demo.internal", "6444"),
    like: { kind: { detected: "mke" } },
    fine: address("proxy.local", "6444"),
  },
  mapRow("ENDPOINT_PORT_MALFORMED", "api.demo.internal", "https"),
  {
    ...mapRow("ENDPOINT_PORT_NOT_FOR_KIND", "proxy.local", "6443"),
    like: { kind: { detected: "mke" } },
    fine: address("proxy.local", "6444"),
  },
  {
    code: "API_ADDRESS_NOT_STABLE",
    for: "install",
    as: "fail",
    wrong: {
      apiAddress: {
        candidates: [
          {
            host: "10.0.0.9",
            port: "6443",
            from: "the kubeconfig you use",
            sources: ["ownKubeconfig"],
            against: ["It may change."],
          },
        ],
      },
    },
    names: "It may change",
  },
  {
    code: "API_ADDRESS_UNRESOLVED",
    for: "install",
    as: "warn",
    wrong: {
      apiAddress: { candidates: [{ host: "api.example.com", port: "6443", from: "a file", sources: [], against: [] }] },
    },
    options: proof("unresolved", "api.example.com"),
    fineOptions: proof("proven"),
    names: "unresolved",
  },
  {
    code: "API_ADDRESS_UNREACHABLE",
    for: "install",
    as: "warn",
    wrong: {},
    options: proof("unreachable"),
    fineOptions: proof("proven"),
    names: "unreachable",
  },
  {
    code: "API_ADDRESS_OTHER_SERVER",
    for: "install",
    as: "fail",
    wrong: {},
    options: proof("wrong certificate"),
    fineOptions: proof("proven"),
    names: "wrong certificate",
  },
  {
    code: "API_NAME_ONLY_IN_CLUSTER",
    for: "running",
    as: "fail",
    wrong: address("api.kube-system.svc.cluster.local"),
    fine: good,
    names: "cluster.local",
  },
  {
    code: "OPERATOR_NAMESERVER_MISSING",
    for: "switch",
    as: "fail",
    like: { kind: { detected: "eks" } },
    wrong: { service: { ...running(), operator: operator() } },
    fine: {
      service: { ...running(), operator: operator({ dnsConfig: { nameservers: ["169.254.169.253"] } }) },
    },
    names: "vendor-operator/vendor-operator",
  },
  {
    code: "OPERATOR_RESOLVES_IN_CLUSTER",
    for: "switch",
    as: "warn",
    wrong: { service: { ...running(), operator: operator({ dnsPolicy: "ClusterFirstWithHostNet" }) } },
    fine: { service: running() },
    names: "ClusterFirstWithHostNet",
  },
];
