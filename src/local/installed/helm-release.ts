import { gzipSync } from "node:zlib";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { OldRelease } from "../../releases/old-release.ts";

const { chart, namespaces } = vendorNames;

/** What the chart package manager puts on everything it made. */
export const HELM_LABELS = { "app.kubernetes.io/managed-by": "Helm" } as const;
export const HELM_ANNOTATIONS = {
  "meta.helm.sh/release-name": chart.release,
  "meta.helm.sh/release-namespace": namespaces.operator,
} as const;

/** The package manager's own record of the release, packed as it packs it. */
export function helmRelease(release: OldRelease, at: string): KubeObject {
  const record = {
    name: chart.release,
    namespace: namespaces.operator,
    version: 1,
    info: { first_deployed: at, last_deployed: at, status: "deployed", description: "Install complete" },
    chart: { metadata: { name: chart.name, version: release.tag, appVersion: release.tag, apiVersion: "v2" } },
    config: { installation: { enabled: true } },
    manifest: "",
  };
  const packed = gzipSync(JSON.stringify(record)).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "helm.sh/release.v1",
    metadata: {
      name: `sh.helm.release.v1.${chart.release}.v1`,
      namespace: namespaces.operator,
      labels: { owner: "helm", name: chart.release, status: "deployed", version: "1" },
    },
    data: { release: Buffer.from(packed).toString("base64") },
  };
}
