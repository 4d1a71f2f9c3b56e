import type { KubeObject } from "../../api/object.ts";
import { onMovedNodes } from "../../api/protocol/node-migration.ts";
import { CNI_CONFIG, cniConfigHash, cniConfigMap } from "./cni-config.ts";
import { nodeAgentRights } from "./component-rules.ts";
import { selectorOf } from "./control-plane.ts";
import { type EnvVar, variable } from "./environment.ts";
import type { RenderInputs } from "./inputs.ts";
import { type NodePaths, nodePaths } from "./node-paths.ts";
import { bgpContainer, cniInstall, nodePodSpec } from "./node-pod.ts";
import { constraintAnnotation, hashAnnotation, hashAnnotations } from "./pod-parts.ts";
import { accountWithRights } from "./rbac.ts";
import { withMetadata, withNodeTerms, withTemplate } from "./workload-overrides.ts";

/** The agent on every Linux node. */
export function nodeAgent(inputs: RenderInputs): KubeObject[] {
  const { names, kind } = inputs;
  const place = { name: names.workloads.node, namespace: names.namespaces.system };
  const { everywhere, atHome } = nodeAgentRights(names, kind);
  const paths = nodePaths(inputs);
  return [
    ...accountWithRights(place, everywhere, atHome),
    ...(paths.cni ? [cniConfigMap(inputs)] : []),
    daemonSet(inputs, paths),
  ];
}

function daemonSet(inputs: RenderInputs, paths: NodePaths): KubeObject {
  const { names, installation, kind } = inputs;
  const { metadata, spec = {} } = installation.nodeDaemonSet ?? {};
  const name = names.workloads.node;
  const labels = selectorOf(name);
  const certificate = inputs.certificates.node;
  const annotations = {
    ...hashAnnotations(inputs, certificate),
    ...(paths.cni ? hashAnnotation(CNI_CONFIG.name, cniConfigHash(inputs)) : {}),
    ...constraintAnnotation(kind, "privileged"),
  };
  const own = {
    metadata: { labels, annotations },
    spec: nodePodSpec(inputs, paths, {
      account: name,
      certificate,
      env: networkEnv(inputs),
      sidecars: bgpContainer(inputs),
      before: cniInstall(inputs, paths, { container: "cni-install", config: CNI_CONFIG }),
    }),
  };
  const template = withTemplate(own, spec.template);
  // Always: were it there only while `vendorctl migrate operator` runs, every agent would be replaced once more at the end.
  const affinity = withNodeTerms(onMovedNodes(names), template.spec.affinity);
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: withMetadata({ name, namespace: names.namespaces.system, labels }, metadata),
    spec: {
      selector: { matchLabels: labels },
      ...(spec.minReadySeconds ? { minReadySeconds: spec.minReadySeconds } : {}),
      updateStrategy: installation.nodeUpdateStrategy,
      template: { ...template, spec: { ...template.spec, affinity } },
    },
  };
}

/** Pods with addresses of their node's podCIDR are reached by the network, or by an overlay: routes to other nodes are theirs. */
function networkEnv({ installation }: RenderInputs): EnvVar[] {
  return variable("NETWORKING_BACKEND", installation.cni?.ipam?.type === "HostLocal" ? "none" : undefined);
}
