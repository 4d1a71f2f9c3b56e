import { calicoNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { customResourceDefinitions } from "../../api/schema/crd.ts";
import type { SeenStored } from "../observation.ts";
import { seeDefinition } from "../observe/definition-hash.ts";
import { type Row, running, upgrading } from "./checked-clusters.ts";
import { object } from "./observed.ts";

const settled = customResourceDefinitions().map((definition) => ({
  ...seeDefinition(definition),
  established: true,
}));

const publicInstallation = (cidr: string) =>
  object("Installation", "default", { spec: { calicoNetwork: { ipPools: [{ cidr }] } } }, "operator.tigera.io/v1");
const storing = (...objects: KubeObject[]): SeenStored => ({ objects, deployments: [], annotated: [] });

export const VERSION_ROWS: readonly Row[] = [
  {
    code: "UPGRADE_VERSION_UNREADABLE",
    for: "upgrade",
    as: "fail",
    wrong: upgrading("master"),
    fine: upgrading("v3.27.5"),
    names: "master",
  },
  {
    code: "UPGRADE_FROM_TOO_OLD",
    for: "upgrade",
    as: "fail",
    wrong: upgrading("v3.14.2"),
    fine: upgrading("v3.15.0"),
    names: "v3.14",
  },
  {
    code: "UPGRADE_TARGET_UNKNOWN",
    for: "upgrade",
    as: "fail",
    wrong: { ...upgrading("v3.27.5"), tool: { version: "v3.33.0" } },
    fine: upgrading("v3.27.5"),
    names: "v3.33",
  },
  {
    code: "UPGRADE_BACKWARDS",
    for: "upgrade",
    as: "fail",
    wrong: upgrading("v3.32.0"),
    fine: upgrading("v3.31.3"),
    names: "v3.32",
  },
  {
    code: "UPGRADE_NOT_CARRIED",
    for: "upgrade",
    as: "fail",
    wrong: {
      ...upgrading("v3.27.5"),
      stored: storing(object("BGPPeer", "rack-1", { spec: { peerIP: "10.0.0.1" } }, "crd.vendor.io/v1")),
    },
    fine: { ...upgrading("v3.27.5"), stored: storing() },
    names: "rack-1",
  },
  {
    code: "OPERATOR_WILL_REFUSE",
    for: "upgrade",
    as: "fail",
    like: { names: calicoNames },
    wrong: { service: { ...upgrading("v3.27.5").service, installation: publicInstallation("192.168.0.0/16") } },
    fine: { service: { ...upgrading("v3.27.5").service, installation: publicInstallation("10.244.0.0/17") } },
    names: "192.168.0.0/16",
  },
  {
    code: "TOOL_VERSION_DIFFERS",
    for: "switch",
    as: "fail",
    wrong: upgrading("v3.27.5"),
    fine: upgrading("v3.31.0"),
    names: "v3.27.5",
  },
  {
    code: "DEFINITIONS_SKEW",
    for: "running",
    as: "warn",
    like: { service: running() },
    wrong: { crds: settled.map((crd, index) => (index === 0 ? { ...crd, hash: "other" } : crd)) },
    fine: { crds: settled },
    names: settled[0]!.name,
  },
  {
    code: "DEFINITIONS_NOT_ESTABLISHED",
    for: "install",
    as: "fail",
    wrong: { crds: [{ ...settled[0]!, established: false }] },
    fine: { crds: settled },
    names: settled[0]!.name,
  },
  {
    code: "FLOW_RESOURCES_TOO_EARLY",
    for: "flows",
    as: "fail",
    wrong: upgrading("v3.29.1"),
    fine: upgrading("v3.30.0"),
    names: "v3.29.1",
  },
  {
    code: "FLOW_UI_NEEDS_LOGS",
    for: "running",
    as: "fail",
    wrong: { service: { ...running(), flowUI: object("FlowUI", "default") } },
    fine: { service: { ...running(), flowUI: object("FlowUI", "default"), flowLogs: object("FlowLogs", "default") } },
    names: "FlowLogs",
  },
  {
    code: "OWNER_REFERENCES_AT_RISK",
    for: "upgrade",
    as: "warn",
    like: upgrading("v3.27.5"),
    wrong: {
      owned: [
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          namespace: "shop",
          name: "notes",
          uid: "u",
          reference: { apiVersion: "vendor.io/v3", kind: "NetworkPolicy", name: "allow-web", uid: "o" },
        },
      ],
    },
    fine: { owned: [] },
    names: "shop/notes",
  },
  {
    code: "HOST_ENDPOINTS_BY_HAND",
    for: "upgrade",
    as: "warn",
    wrong: {
      v3: { served: "stored", hostEndpoints: [object("HostEndpoint", "edge", { spec: { interfaceName: "*" } })] },
    },
    fine: {
      v3: {
        served: "stored",
        hostEndpoints: [
          object("HostEndpoint", "n-auto-hep", { spec: { interfaceName: "*" } }),
          object("HostEndpoint", "edge-eth1", { spec: { interfaceName: "eth1" } }),
        ],
      },
    },
    names: "edge",
  },
  {
    code: "TEMPORARY_UPGRADE_POLICY",
    for: "upgrade",
    as: "warn",
    wrong: {
      v3: { served: "stored", globalNetworkPolicies: [object("GlobalNetworkPolicy", "default.allow-all-upgrade")] },
    },
    fine: { v3: { served: "stored", globalNetworkPolicies: [object("GlobalNetworkPolicy", "default.mine")] } },
    names: "allow-all-upgrade",
  },
  {
    code: "DATASTORE_IS_LOCKED",
    for: "switch",
    as: "fail",
    like: { service: running() },
    wrong: {
      lock: { state: "locked", where: "the Kubernetes API", writer: "kubectl-patch", run: undefined, moved: false },
    },
    names: "by kubectl-patch",
  },
  {
    code: "SIDECARS_OF_ANOTHER_VERSION",
    for: "upgrade",
    as: "warn",
    wrong: {
      service: {
        ...running(),
        injectors: [
          {
            ...object("ConfigMap", "i", { data: { config: "image: r/sidecar:v3.27.5" } }),
            metadata: { name: "i", namespace: "mesh" },
          },
        ],
      },
    },
    fine: {
      service: {
        ...running(),
        injectors: [object("ConfigMap", "i", { data: { config: "image: r/sidecar:v3.31.3" } })],
      },
    },
    names: "mesh/i",
  },
];
