import { Document, isMap, isScalar } from "yaml";
import type { KubeObject } from "../api/object.ts";
import type { OldRelease } from "./old-release.ts";
import { type PublishedFile, publishedObjects } from "./published.ts";

const TITLES: Record<PublishedFile, string> = {
  policyAndNetworking: "Policy and networking.",
  policyAndOverlay: "Policy, and networking by a separate overlay.",
  policyOnly: "Policy only, with another CNI plugin.",
  policyAndNetworkingEtcd: "Policy and networking, on the etcd datastore.",
  policyAndOverlayEtcd: "Policy, and networking by a separate overlay, on the etcd datastore.",
  operator: "The operator.",
  operatorCrds: "The CRDs.",
};

/** The comments of the older manifests at their settings, by the path in an object of a kind. */
const REMARKS: readonly (readonly [kind: string, path: readonly string[], text: string])[] = [
  ["ConfigMap", ["data", "veth_mtu"], "0 finds it from the node's interfaces."],
  ["ConfigMap", ["data", "ipv4_pool_cidr"], "Pods of the first pool get their addresses from here."],
  ["ConfigMap", ["data", "etcd_endpoints"], "Where your etcd is; several are separated by commas."],
  ["ConfigMap", ["data", "etcd_ca"], "If you use TLS, these files come from the Secret above."],
  ["ConfigMap", ["data", "cni_network_config"], "The CNI configuration to write on each node."],
  ["Secret", ["data"], "Put in base64 what your etcd asks for."],
];

/** A file of an older release as it was published: with its comments, so that a user's own can be distinguished from them. */
export function publishedText(file: PublishedFile, release: OldRelease, options: { without?: string } = {}): string {
  const objects = publishedObjects(file, release).filter(({ kind }) => kind !== options.without);
  const documents = objects.map((object) => `---\n${printed(object)}`);
  return `# ${TITLES[file]} ${release.tag}\n${documents.join("")}`;
}

function printed(object: KubeObject): string {
  const document = new Document(object, { aliasDuplicateObjects: false, compat: "yaml-1.1" });
  for (const [kind, path, text] of REMARKS) if (kind === object.kind) remark(document, path, text);
  return document.toString({ lineWidth: 0 });
}

function remark(document: Document, path: readonly string[], text: string): void {
  const parent = document.getIn(path.slice(0, -1), true) ?? document.contents;
  if (!isMap(parent)) return;
  const pair = parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1));
  if (pair && isScalar(pair.key)) pair.key.commentBefore = ` ${text}`;
}
