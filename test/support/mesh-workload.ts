import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";

/** A service of a team; with the sidecar as an injector would have added it. */
export function meshWorkload(name: string, sidecar: boolean): KubeObject {
  const labels = { app: name };
  const containers = [
    { name: "main", image: "registry.example.com/shop/main:1" },
    ...(sidecar
      ? [{ name: vendorNames.manifests.sidecarContainer, image: "registry.vendor.io/vendor/vendor:v3.27.5" }]
      : []),
  ];
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: "shop" },
    spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
}
