import type { KubeControllersConfiguration } from "../resources/kube-controllers-configuration.ts";
import { type Problem, reporters } from "./problem.ts";
import {
  labelKeyProblems,
  labelValueProblems,
  nameProblems,
  netProblems,
  regexProblems,
  selectorProblems,
  singletonProblems,
} from "./values.ts";

export const CONTROLLERS_PROBLEMS = {
  HOST_ENDPOINT_TEMPLATE_TWICE: {
    title: "Two templates make host endpoints of the same name",
    why: "Names are made of the node's and the template's; the second would conflict with the first.",
    fix: "Give each template its own generateName.",
    rule: "Host endpoints of a template are named NODE-GENERATENAME-auto-hep.",
  },
} as const;

const at = reporters(CONTROLLERS_PROBLEMS);

export function kubeControllersConfigurationProblems(config: KubeControllersConfiguration): Problem[] {
  const templates = config.spec.controllers?.node?.hostEndpoint?.templates ?? [];
  const seen = new Set<string>();
  return [
    ...singletonProblems(config.metadata.name),
    ...templates.flatMap((template, index) => {
      const path = `spec.controllers.node.hostEndpoint.templates[${index}]`;
      const name = template.generateName;
      const twice = seen.has(name);
      seen.add(name);
      return [
        ...(name === undefined ? [] : nameProblems(name, `${path}.generateName`, { dots: true })),
        ...(twice ? [at.HOST_ENDPOINT_TEMPLATE_TWICE(`${path}.generateName`, `Two templates are named ${name}.`)] : []),
        ...netProblems(template.interfaceCIDRs, `${path}.interfaceCIDRs`, false),
        ...regexProblems(template.interfacePattern, `${path}.interfacePattern`),
        ...selectorProblems(template.nodeSelector, `${path}.nodeSelector`),
        ...labelProblems(template.labels, `${path}.labels`),
      ];
    }),
  ];
}

function labelProblems(labels: Record<string, string> | undefined, path: string): Problem[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...labelKeyProblems(key, path),
    ...labelValueProblems(value, `${path}.${key}`),
  ]);
}
