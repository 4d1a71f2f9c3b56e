import type { KubeObject } from "../../api/object.ts";
import type { Schema } from "../../api/schema/schema.ts";
import type { PlatformProfile, PlatformProfileOptions } from "../platform-profile.ts";
import { dnsObjects } from "./dns-add-on.ts";
import { ENTERPRISE_PLATFORM_IMAGES } from "./node-images.ts";
import { controlPlaneTaints, planNodes, roleLabels } from "./node-plan.ts";
import { serverNamesFor } from "./server-names.ts";
import { proxyOf } from "./service-proxy-add-on.ts";
import { systemNamespaces } from "./system-namespaces.ts";

const SERVICE_CIDRS = ["172.30.0.0/16", "fd02::/112"];
const POD_CIDRS = ["10.128.0.0/14", "fd01::/48"];
const GROUP = "config.openshift.io";

/** The enterprise platform: it has no kube-proxy, identifies itself by its own resources, and needs no configured address. */
export const openshift: PlatformProfile = {
  kind: "openshift",
  serviceCidrs: SERVICE_CIDRS,
  podCidrs: POD_CIDRS,
  proxies: ["none"],
  endpoint: (options) => ({ host: `api-int.${domain(options)}`, port: 6443 }),
  serverNames: (options) =>
    serverNamesFor(options, SERVICE_CIDRS, [`api-int.${domain(options)}`, `api.${domain(options)}`]),
  nodes: (options) =>
    planNodes(options, {
      podCidrs: POD_CIDRS,
      nodeCidrs: ["10.0.0.0/16", "fd00:10:0::/64"],
      images: ENTERPRISE_PLATFORM_IMAGES,
      zones: ["rack-1", "rack-2", "rack-3"],
      controlPlane: "shown",
      describe: (node) => {
        const role = node.role === "control-plane" ? "master" : "worker";
        return {
          name: `${role}-${node.index}.${domain(options)}`,
          labels: { ...roleLabels(node), [`node-role.kubernetes.io/${role}`]: "", "node.openshift.io/os_id": "rhel" },
          taints: controlPlaneTaints(node, options)?.map((taint) => ({
            ...taint,
            key: "node-role.kubernetes.io/master",
          })),
        };
      },
    }),
  objects(options) {
    proxyOf(openshift, options);
    return [
      ...systemNamespaces(),
      definition("ClusterVersion", "clusterversions"),
      definition("Network", "networks"),
      definition("Infrastructure", "infrastructures"),
      ...platformObjects(options),
      ...dnsObjects({ serviceCidr: SERVICE_CIDRS[0] as string, options }),
    ];
  },
  behaviours: [],
};

function domain({ name }: PlatformProfileOptions): string {
  return `${name}.cluster.internal`;
}

function platformObjects(options: PlatformProfileOptions): KubeObject[] {
  const families = options.dualStack ? 2 : 1;
  const networks = {
    clusterNetwork: POD_CIDRS.slice(0, families).map((cidr) => ({ cidr, hostPrefix: cidr.includes(":") ? 64 : 23 })),
    serviceNetwork: SERVICE_CIDRS.slice(0, families),
    networkType: "Vendor",
  };
  const object = (kind: string, name: string, body: object): KubeObject => ({
    apiVersion: `${GROUP}/v1`,
    kind,
    metadata: { name },
    ...body,
  });
  return [
    object("ClusterVersion", "version", {
      spec: { channel: "stable-4.19", clusterID: "6c8f2b1e-6d0b-4c3e-9d1c-0a4a4f1f7c11" },
      status: { desired: { version: "4.19.9" }, history: [{ state: "Completed", version: "4.19.9" }] },
    }),
    object("Network", "cluster", { spec: networks, status: { ...networks, clusterNetworkMTU: 1450 } }),
    object("Infrastructure", "cluster", {
      spec: { platformSpec: { type: "None" } },
      status: {
        apiServerInternalURI: `https://api-int.${domain(options)}:6443`,
        apiServerURL: `https://api.${domain(options)}:6443`,
        controlPlaneTopology: "SingleReplica",
        platform: "None",
      },
    }),
  ];
}

/** Without a status subresource, so that the platform's description of itself is one object written at once. */
function definition(kind: string, plural: string): KubeObject {
  const open: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      scope: "Cluster",
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
        },
      ],
    },
  };
}
