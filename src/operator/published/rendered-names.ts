import type { Names } from "../../api/names.ts";
import { type KubeObject, parseGroupVersion } from "../../api/object.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { effectiveInstallation } from "../../api/tables/defaults.ts";
import type { Component, RenderInputs } from "../render/inputs.ts";
import { renderComponent } from "../render/render-component.ts";

/** The names of all objects of one kind that the operator makes. */
export interface RenderedNames {
  group: string;
  namespaced: boolean;
  plural: string;
  objects: string[];
}

/** Where the public system has it, too. */
const POLICY_SYNC_DIR = "/var/run/nodeagent";

const COMPONENTS: readonly Component[] = ["network", "apiserver", "flow-logs", "flow-ui"];

/** Of every kind but pools, which people name: each name that rendering gives, on any kind of cluster and either data plane. */
export function everyRenderedName(names: Names): RenderedNames[] {
  const found = new Map<string, RenderedNames>();
  for (const object of everything(names)) {
    const { group } = parseGroupVersion(object.apiVersion);
    const plural = pluralOf(object.kind);
    const namespaced = object.metadata.namespace !== undefined;
    const row = found.get(`${plural}.${group}`) ?? { group, plural, namespaced, objects: [] };
    if (!row.objects.includes(object.metadata.name)) row.objects.push(object.metadata.name);
    found.set(`${plural}.${group}`, row);
  }
  return [...found.values()];
}

function everything(names: Names): KubeObject[] {
  const kinds = Object.keys(CLUSTER_KINDS) as ClusterKind[];
  return kinds.flatMap((kind) =>
    [false, true].flatMap((bpf) => {
      const inputs = ordinaryInputs(names, { kind, bpf });
      return COMPONENTS.flatMap((component) => renderComponent(component, inputs));
    }),
  );
}

/** Inputs as good as any: for what does not depend on them, and as a start for the plain manifests. */
export function ordinaryInputs(names: Names, { kind, bpf }: { kind: ClusterKind; bpf: boolean }): RenderInputs {
  const certificate = { secretName: "", hash: "" };
  return {
    version: "",
    kind,
    installation: effectiveInstallation(
      { variant: "OpenSource", vendorNetwork: { linuxDataplane: bpf ? "BPF" : "Nftables" } },
      { kind },
    ),
    names,
    apiEndpoint: undefined,
    dns: undefined,
    pullSecrets: [],
    certificates: {
      node: certificate,
      apiServer: certificate,
      kubeControllers: certificate,
      flowLogs: certificate,
    },
    caBundle: "",
    caHash: "",
    owner: () => undefined,
    bpf,
    nodes: { linux: 2 },
    policySyncPathPrefix: POLICY_SYNC_DIR,
  };
}

/** Regular for every kind we render. */
function pluralOf(kind: string): string {
  const lower = kind.toLowerCase();
  if (lower.endsWith("y")) return `${lower.slice(0, -1)}ies`;
  return lower.endsWith("s") ? `${lower}es` : `${lower}s`;
}
