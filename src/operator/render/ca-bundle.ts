import type { KubeObject } from "../../api/object.ts";
import type { RenderInputs } from "./inputs.ts";
import { CA_BUNDLE } from "./pod-parts.ts";

/** The certificates our programs trust each other by; public, so not a Secret. */
export function caBundle({ names, caBundle: certificates }: RenderInputs): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: CA_BUNDLE.name, namespace: names.namespaces.system },
    data: { [CA_BUNDLE.key]: certificates },
  };
}
