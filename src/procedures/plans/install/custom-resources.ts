import type { Dataplane } from "../../../api/dataplane.ts";
import type { Names } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import { CLUSTER_KINDS } from "../../../api/tables/cluster-kinds.ts";
import { parseOperatingSystem } from "../../../api/tables/operating-system.ts";
import { validateObject } from "../../../api/validation/validate.ts";
import { clusterFacts, kindOf } from "../../cluster-facts.ts";
import type { Observation } from "../../observation.ts";
import { dataplaneName } from "../cluster-view.ts";
import { parsePath } from "../field-path.ts";
import { errors } from "../plan-errors.ts";
import { editManifest, type ManifestEdit, manifestObjects } from "./edit-manifest.ts";
import { refusedByPublicOperator } from "./public-operator-rules.ts";

export interface CustomResourceWishes {
  dataplane: Dataplane;
  /** False where the default is what is wanted, and the line is not needed. */
  writeDataplane: boolean;
  /** Whether the operator looks after the service proxy; undefined: as published. */
  proxyManagement: "Enabled" | "Disabled" | undefined;
  flowLogs: boolean;
  flowUI: boolean;
  /** Prefix of the first pool. */
  podCidr?: string;
  /** `--set`: fields of the Installation. */
  edits: readonly { path: readonly (string | number)[]; value: unknown }[];
}

/** Install step 5: the published custom resources, edited for this cluster, comments and all. */
export function customResources(observation: Observation, published: string, wishes: CustomResourceWishes): string {
  const { names } = observation;
  const name = names.manifests.customResources;
  const { kind } = names.kinds.installation;
  const edit = (path: string, value: unknown): ManifestEdit => ({ kind, path: parsePath(path) ?? [], value });
  const edits: ManifestEdit[] = [
    ...(wishes.writeDataplane ? [edit(names.fields.linuxDataplane, dataplaneName(names, wishes.dataplane))] : []),
    ...(wishes.proxyManagement ? [edit(names.fields.serviceProxyManagement, wishes.proxyManagement)] : []),
    ...(needsFlexVolumePath(observation) ? [edit(names.fields.flexVolumePath, names.paths.flexVolume)] : []),
    ...(wishes.podCidr === undefined ? [] : [edit(`${networkPath(names)}.ipPools[0].cidr`, wishes.podCidr)]),
    ...wishes.edits.map(({ path, value }) => ({ kind, path, value })),
  ];
  const added = [
    ...(wishes.flowLogs ? [flowResource(names, "flowLogs")] : []),
    ...(wishes.flowUI ? [flowResource(names, "flowUI")] : []),
  ];
  const text = editManifest(name, published, edits, added);
  refuseInvalid(observation, manifestObjects(name, text));
  return text;
}

/** The section the data plane is selected in. */
const networkPath = ({ fields }: Names) => fields.linuxDataplane.replace(/\.[^.]+$/, "");

/** Only the Bottlerocket-like image on the EKS-like service keeps volume plugins elsewhere. */
function needsFlexVolumePath(observation: Observation): boolean {
  if (!CLUSTER_KINDS[kindOf(observation)].hasFlexVolumePath) return false;
  return observation.nodes.some(({ osImage }) => parseOperatingSystem(osImage).family === "bottlerocket");
}

function flowResource(names: Names, noun: "flowLogs" | "flowUI"): KubeObject {
  return {
    apiVersion: groupVersion(names.groups.operator),
    kind: names.kinds[noun].kind,
    metadata: { name: names.singleton },
    spec: {},
  };
}

/** What no edit of a file could mend; the checks before a plan speak of it. */
const OF_THE_CLUSTER = new Set([
  "EBPF_KERNEL_TOO_OLD",
  "EBPF_ARCHITECTURE",
  "EBPF_MIXED_CLUSTER",
  "EBPF_NEEDS_KUBE_DATASTORE",
  "EBPF_CLUSTER_KIND",
  "SERVICE_PROXY_IPVS",
]);

/** What the API server or the operator would refuse is refused here, before anything is made. */
function refuseInvalid(observation: Observation, objects: readonly KubeObject[]): void {
  if (observation.names.dialect !== "vendor") {
    refuseForPublicOperator(observation, objects);
    return;
  }
  const [problem] = objects
    .flatMap((object) => validateObject(object, clusterFacts(observation)))
    .filter(({ code }) => !OF_THE_CLUSTER.has(code));
  if (problem) throw errors.INSTALL_EDIT_REFUSED(`${problem.path}: ${problem.message}`, problem.fix);
}

function refuseForPublicOperator(observation: Observation, objects: readonly KubeObject[]): void {
  const installation = objects.find(({ kind }) => kind === observation.names.kinds.installation.kind);
  const [refusal] = installation ? refusedByPublicOperator(installation, observation) : [];
  if (refusal) throw errors.INSTALL_OPERATOR_WOULD_REFUSE(refusal.path, refusal.message, refusal.fix);
}
