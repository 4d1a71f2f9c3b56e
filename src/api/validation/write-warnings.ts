import type { Noun } from "../names.ts";
import type { KubeObject } from "../object.ts";
import type { DataplaneConfiguration } from "../resources/dataplane-configuration.ts";
import type { KubeControllersConfiguration } from "../resources/kube-controllers-configuration.ts";
import type { PolicyRule } from "../resources/policy-rule.ts";
import { ebpfObjectProblems } from "./ebpf.ts";
import { type Problem, reporters } from "./problem.ts";

/** What an object may ask for though this cluster does not do it: it is stored, and the client is warned. */
export const WARNING_PROBLEMS = {
  EBPF_LOG_RULE: {
    title: "A Log rule in a cluster that runs eBPF",
    why: "The eBPF data plane writes no lines for Log rules; the next rule decides, as always.",
    fix: "Read vendor node show counters, or log on the nftables data plane.",
    rule: "Log rules write to the kernel log on the nftables data plane only.",
  },
  HTTP_RULE_WITHOUT_SIDECARS: {
    title: "A rule with http in a cluster without sidecars",
    why: "Only sidecars see requests. Without them the rule allows every method and path to the peers it names.",
    fix: "Set policySyncPathPrefix of the DataplaneConfiguration default and add sidecars: docs/guide/sidecars.md.",
    rule: "http of a rule is enforced by the sidecar of the pod that receives.",
  },
  POOL_WITHOUT_CONTROLLER: {
    title: "A pool for load balancers while their controller is off",
    why: "No Service gets an address of the pool.",
    fix: "Add controllers.loadBalancer to the KubeControllersConfiguration default.",
    rule: "A KubeControllersConfiguration that names controllers turns off those that it does not name.",
  },
} as const;

const at = reporters(WARNING_PROBLEMS);

type Facts = Partial<Record<"dataplaneConfiguration" | "kubeControllersConfiguration", KubeObject | undefined>>;
type Spec = Record<string, unknown>;

/** The singletons that decide whether to warn about an object: most objects need none. */
export function warningFacts(noun: Noun, object: KubeObject): (keyof Facts)[] {
  if (isForLoadBalancers(object)) return ["kubeControllersConfiguration"];
  const asksForMore =
    ebpfObjectProblems([object]).length + rulesWith(object, isLog).length + rulesWith(object, isHttp).length;
  return noun !== "dataplaneConfiguration" && asksForMore > 0 ? ["dataplaneConfiguration"] : [];
}

/** What of an object is not done in this cluster. Only what is not refused: it may be done tomorrow, or on some nodes. */
export function writeWarnings(object: KubeObject, facts: Facts): Problem[] {
  const dataplane = facts.dataplaneConfiguration as DataplaneConfiguration | undefined;
  const controllers = (facts.kubeControllersConfiguration as KubeControllersConfiguration | undefined)?.spec
    ?.controllers;
  const isEbpf = dataplane?.spec?.bpfEnabled === true;
  const problems = isEbpf ? [...ebpfObjectProblems([object]), ...logProblems(object)] : [];
  if (dataplane && !dataplane.spec?.policySyncPathPrefix) problems.push(...httpProblems(object));
  if (isForLoadBalancers(object) && controllers && !controllers.loadBalancer) {
    problems.push(at.POOL_WITHOUT_CONTROLLER("spec.allowedUses", "The controller of load balancers is off."));
  }
  return problems;
}

/** As clients print it after "Warning: ". */
export function warningText({ path, message, fix, code }: Problem): string {
  return `${path}: ${message} ${fix} [${code}]`;
}

function logProblems(object: KubeObject): Problem[] {
  const message = "The eBPF data plane writes no lines for this Log rule.";
  return rulesWith(object, isLog).map((path) => at.EBPF_LOG_RULE(`${path}.action`, message));
}

function httpProblems(object: KubeObject): Problem[] {
  const message = "No sidecar enforces it: the rule allows every method and path.";
  return rulesWith(object, isHttp).map((path) => at.HTTP_RULE_WITHOUT_SIDECARS(`${path}.http`, message));
}

const isLog = ({ action }: PolicyRule) => action === "Log";
const isHttp = ({ http }: PolicyRule) => http !== undefined;

/** Paths of rules, of policies and profiles alike. */
function rulesWith(object: KubeObject, is: (rule: PolicyRule) => boolean): string[] {
  const spec = (object["spec"] ?? {}) as Spec;
  return ["ingress", "egress"].flatMap((direction) => {
    const rules = spec[direction];
    if (!Array.isArray(rules)) return [];
    return rules.flatMap((rule: PolicyRule, index) => (is(rule ?? {}) ? [`spec.${direction}[${index}]`] : []));
  });
}

function isForLoadBalancers(object: KubeObject): boolean {
  const { allowedUses } = (object["spec"] ?? {}) as { allowedUses?: unknown };
  return Array.isArray(allowedUses) && allowedUses.includes("LoadBalancer");
}
