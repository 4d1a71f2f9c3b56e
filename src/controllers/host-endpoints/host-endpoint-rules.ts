import { matchesExpression, parseSelectorExpression } from "../../api/schema/selector-expression.ts";
import { type Cidr, parseCidr } from "../../kit/ip.ts";
import type { HostEndpointSettings, HostEndpointTemplate } from "../settings/effective-settings.ts";

/** The settings of host endpoints, read once and asked for every node. */
export interface HostEndpointRules {
  enabled: boolean;
  allInterfaces: boolean;
  templates: TemplateRule[];
}

export interface TemplateRule {
  name: string;
  selects(labels: Readonly<Record<string, string>>): boolean;
  prefixes: Cidr[];
  interfaces: RegExp | undefined;
  labels: Readonly<Record<string, string>>;
}

export function hostEndpointRules(settings: HostEndpointSettings): HostEndpointRules {
  return {
    enabled: settings.autoCreate === "Enabled",
    allInterfaces: settings.createDefaultHostEndpoint === "Enabled",
    templates: settings.templates.map(templateRule),
  };
}

/** Settings are checked before they are in force; a selector that cannot be read would select nothing. */
function templateRule(template: HostEndpointTemplate): TemplateRule {
  const selector = parseSelectorExpression(template.nodeSelector ?? "");
  return {
    name: template.generateName,
    selects: (labels) => "expression" in selector && matchesExpression(selector.expression, labels),
    prefixes: (template.interfaceCIDRs ?? []).flatMap((text) => parseCidr(text) ?? []),
    interfaces: template.interfacePattern === undefined ? undefined : new RegExp(template.interfacePattern),
    labels: template.labels ?? {},
  };
}
