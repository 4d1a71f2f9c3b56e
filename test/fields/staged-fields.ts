import { vendorNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject } from "../../src/api/object.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { stagedCalculator } from "../../src/calc/staged-calculator.ts";
import type { Shown } from "./field-table.ts";

/** What is staged on node `here`, in a cluster of these objects; of what is ignored nothing. */
export function stagedTables(cluster: readonly KubeObject[], policy: KubeObject): unknown {
  const create = () => createCalculator("here", vendorNames);
  const calculator = stagedCalculator(create(), { names: vendorNames, create, objects: () => cluster });
  calculator.set(policy);
  const staged = calculator.staged();
  if (!staged) return undefined;
  const { endpoints, hostEndpoints, policies, ipSets } = staged.model;
  return [endpoints, hostEndpoints, policies, ipSets];
}

export function stagedPolicy(kind: string, spec: object, namespace?: string): KubeObject {
  const metadata = { name: "default.planted", ...(namespace && { namespace }) };
  return { apiVersion: groupVersion(vendorNames.groups.stored), kind, metadata, spec };
}

type Fields = Record<string, Shown>;

/** Of a selector at a path, set into the spec by `within`. */
function selectorFields(path: string, within: (selector: object) => object): Fields {
  const requirement = { key: "app", operator: "In", values: ["web"] };
  const differing = (field: object) => ({
    base: within({ matchExpressions: [requirement] }),
    set: within({ matchExpressions: [{ ...requirement, ...field }] }),
  });
  return {
    [`${path}.matchLabels`]: {
      base: within({ matchLabels: { app: "web" } }),
      set: within({ matchLabels: { app: "db" } }),
    },
    [`${path}.matchExpressions.key`]: differing({ key: "tier" }),
    [`${path}.matchExpressions.operator`]: differing({ operator: "NotIn" }),
    [`${path}.matchExpressions.values`]: differing({ values: ["db"] }),
  };
}

function ruleFields(direction: "ingress" | "egress"): Fields {
  const side = direction === "ingress" ? "from" : "to";
  const rule = (inner: object) => ({ [direction]: [inner] });
  const peer = (inner: object) => rule({ [side]: [inner] });
  const port = (inner: object) => rule({ ports: [inner] });
  const block = { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] };
  return {
    ...selectorFields(`${direction}.${side}.podSelector`, (podSelector) => peer({ podSelector })),
    ...selectorFields(`${direction}.${side}.namespaceSelector`, (namespaceSelector) => peer({ namespaceSelector })),
    [`${direction}.${side}.ipBlock.cidr`]: {
      base: peer({ ipBlock: block }),
      set: peer({ ipBlock: { ...block, cidr: "10.0.0.0/12" } }),
    },
    [`${direction}.${side}.ipBlock.except`]: {
      base: peer({ ipBlock: block }),
      set: peer({ ipBlock: { ...block, except: ["10.2.0.0/16"] } }),
    },
    [`${direction}.ports.protocol`]: { base: port({ port: 80 }), set: port({ port: 80, protocol: "UDP" }) },
    [`${direction}.ports.port`]: { base: port({ port: 80 }), set: port({ port: 81 }) },
    [`${direction}.ports.endPort`]: { base: port({ port: 80 }), set: port({ port: 80, endPort: 90 }) },
  };
}

export const STAGED_KUBERNETES_FIELDS: Fields = {
  stagedAction: { base: { ingress: [{}] }, set: { stagedAction: "Ignore" } },
  ...selectorFields("podSelector", (podSelector) => ({ podSelector })),
  policyTypes: { base: { ingress: [{}] }, set: { policyTypes: ["Egress"] } },
  ...ruleFields("ingress"),
  ...ruleFields("egress"),
};
