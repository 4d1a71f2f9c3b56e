import { type Names, vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { VERSION } from "../../api/tables/release.ts";
import { imageFor } from "../render/image.ts";
import { recommendedLabels } from "../render/metadata.ts";
import { chartFiles } from "./chart.ts";
import { customResourcesBpfFile, customResourcesFile } from "./custom-resources.ts";
import { manifestObjects } from "./manifest-install.ts";
import { type ManifestVariant, manifestVariants } from "./manifest-variants.ts";
import { grafanaDashboard, monitoringObjects } from "./monitoring.ts";
import { nodeCleanupObjects } from "./node-cleanup.ts";
import { OPERATOR_DEFAULTS, operatorObjects } from "./operator-objects.ts";
import { printYaml } from "./print-yaml.ts";
import { MESH_VERSIONS, sidecarInjector } from "./sidecar-injector.ts";

const CLEANUP =
  "Removes what agents wrote on nodes, after the service was uninstalled by kubectl or helm: pods with its addresses lose their network.\nEdit the CNI directories where yours differ. A pod that is ready has cleaned its node; then delete this file's objects.";
const MONITORING =
  "PodMonitors and alerts, for a cluster with the Prometheus operator. Programs serve metrics only where that is asked for: docs/guide/monitoring.md.";
const GENERATED = "Generated from src/operator. Do not edit it in the repository: run `npm run generate`.";

/** Everything people install from, by path; the CRDs are printed by `src/api`. */
export function renderGeneratedFiles(names: Names = vendorNames): Record<string, string> {
  const { manifests } = names;
  const at = (file: string) => `manifests/${file}`;
  const image = imageFor({}, VERSION);
  return {
    [at(manifests.operator)]: printYaml(
      `The operator. Apply ${manifests.operatorCrds} first.\n${GENERATED}`,
      operatorObjects({ image, ...OPERATOR_DEFAULTS }, names).map(labelled),
    ),
    [at(manifests.customResources)]: customResourcesFile(names),
    [at("custom-resources-bpf.yaml")]: customResourcesBpfFile(names),
    [at("monitoring.yaml")]: printYaml(`${MONITORING}\n${GENERATED}`, monitoringObjects(names)),
    [at("grafana-dashboard.json")]: `${JSON.stringify(grafanaDashboard(), undefined, 2)}\n`,
    [at("node-cleanup.yaml")]: printYaml(`${CLEANUP}\n${GENERATED}`, nodeCleanupObjects(image)),
    ...Object.fromEntries(
      manifestVariants(names).map((variant) => [
        at(variant.file),
        printYaml(headerOf(variant, names), manifestObjects(variant, VERSION, names)),
      ]),
    ),
    ...Object.fromEntries(
      MESH_VERSIONS.map((mesh) => [
        at(manifests.sidecarInjector(mesh.version)),
        printYaml(`The sidecar of application layer policy, for version ${mesh.version} of the mesh.\n${GENERATED}`, [
          sidecarInjector(mesh, VERSION, names),
        ]),
      ]),
    ),
    ...chartFiles(VERSION, names),
  };
}

function labelled(object: KubeObject): KubeObject {
  const labels = { ...object.metadata.labels, ...recommendedLabels(object, "operator", VERSION) };
  return { ...object, metadata: { ...object.metadata, labels } };
}

const NETWORK_NOTES: Record<ManifestVariant["networking"], string> = {
  own: "",
  overlay:
    "\nNodes need spec.podCIDR (kube-controller-manager --allocate-node-cidrs); Network in net-conf.json is the cluster CIDR.",
  foreign: "\nNodes need spec.podCIDR, and the network must route each node's podCIDR to it, as cloud providers do.",
};

function headerOf({ title, datastore, networking }: ManifestVariant, { manifests }: Names): string {
  const edit =
    datastore === "etcd"
      ? `Before applying, set ${manifests.etcdEndpointsKey} in ConfigMap ${manifests.configMap} and fill the Secret; where etcd has users,\nadd etcd-username and etcd-password to it. eBPF does not work on this datastore, and its node pods show READY 1/2.`
      : `Edit ConfigMap ${manifests.configMap} before applying, and apply your edits again when you upgrade.`;
  return `${title}, without an operator.\n${edit}${NETWORK_NOTES[networking]}\nkubectl apply --server-side --force-conflicts -f this file\n${GENERATED}`;
}
