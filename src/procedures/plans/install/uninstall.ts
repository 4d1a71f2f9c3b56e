import { groupVersion, type KubeObject } from "../../../api/object.ts";
import { nameOf, type Target, targetOf } from "../../actions/objects/target.ts";
import { kindOf } from "../../cluster-facts.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { isEbpfOn, isProxyManaged, operatorTarget, singleton } from "../cluster-view.ts";
import { proxyMethod } from "../kube-proxy/proxy-method.ts";
import { restoreProxySteps } from "../kube-proxy/proxy-steps.ts";
import { errors } from "../plan-errors.ts";
import { deleteObjectStep, runToolStep, type StepText, step, waitOutsideStep } from "../steps.ts";
import { operatorHandles } from "../switch/switch.ts";
import { manifestObjects } from "./edit-manifest.ts";
import { CHART_TOOL, type ReadFile, withoutHooks } from "./install-operator.ts";

export interface UninstallInputs {
  removeCrds: boolean;
  files: { definitions: ReadFile; operator: ReadFile };
  chartTool: boolean;
  /** Flags that make the chart tool mean this cluster. */
  connection?: readonly string[];
  command: string;
}

/** Everything away, in an order in which each can still be taken away by who made it. */
export function planUninstall(observation: Observation, inputs: UninstallInputs): Plan {
  const { service, names } = observation;
  if (service.method === "manifest") throw errors.UNINSTALL_BY_HAND();
  if (service.method === "none" && observation.crds.length === 0 && !service.endpointMap) {
    throw errors.UNINSTALL_NOTHING();
  }
  return makePlan({
    procedure: "uninstall",
    names: names.dialect,
    title: `Uninstall from a cluster of kind ${kindOf(observation)}${inputs.removeCrds ? ", with the CRDs and every resource of theirs" : ""}`,
    command: inputs.command,
    observed: fingerprint(observation),
    steps: [
      ...proxySteps(observation),
      ...customResourceSteps(observation),
      ...operatorSteps(observation, inputs),
      ...orphanSteps(observation),
      ...endpointMapSteps(observation),
      ...lostPodSteps(observation),
      ...namespaceSteps(observation, inputs),
      ...cleanNodesSteps(observation, inputs),
      ...definitionSteps(observation, inputs),
      provedStep(inputs),
    ],
    notes: notesOf(observation, inputs),
  });
}

/** kube-proxy must serve Services when eBPF is removed. If the operator parked it, the operator restores it first. */
function proxySteps(observation: Observation): Step[] {
  const way = proxyMethod(observation);
  if (!isEbpfOn(observation) && !observation.proxy.parked) return [];
  if (hasOperator(observation) && isProxyManaged(observation) && operatorHandles(observation, way)) return [];
  return restoreProxySteps(observation, way);
}

/** A Deployment without replicas removes nothing, and no finalizer. */
function hasOperator({ service: { operator } }: Observation): boolean {
  return operator !== undefined && (operator["spec"] as { replicas?: number } | undefined)?.replicas !== 0;
}

/** The last first: what was built on the others goes before them. */
function customResourceSteps(observation: Observation): Step[] {
  const { names, service } = observation;
  const withoutOperator = !hasOperator(observation);
  const all = [
    { noun: "flowUI", object: service.flowUI, risk: "low" },
    { noun: "flowLogs", object: service.flowLogs, risk: "low" },
    { noun: "apiServer", object: service.apiServer, risk: "low" },
    { noun: "installation", object: service.installation, risk: "high" },
  ] as const;
  const status = { flowUI: "flowUI", flowLogs: "flowLogs", apiServer: "apiServer", installation: "network" } as const;
  return all
    .filter(({ object }) => object !== undefined)
    .map(({ noun, risk }) => {
      const target = singleton(names, noun);
      const said: StepText = {
        id: `remove-${names.kinds[noun].kind.toLowerCase()}`,
        title: `Remove ${target.kind} ${target.name}`,
        where: nameOf(target),
        because: withoutOperator
          ? "No operator runs to remove its finalizers, so they are removed here. See docs/guide/install.md#uninstall."
          : "The operator removes what it installed and then the finalizer, so custom resources go before the operator. See docs/guide/operator.md#remove.",
        risk,
      };
      return step("remove-custom-resource", said, {
        target,
        ...(withoutOperator && { withoutOperator }),
        afterUndo: { status: { statuses: [names.statuses[status[noun]]] } },
      });
    });
}

function operatorSteps(observation: Observation, inputs: UninstallInputs): Step[] {
  const { service, names } = observation;
  if (!service.operator) return [];
  const said: StepText = {
    id: "remove-operator",
    title: "Remove the operator and its RBAC",
    where: nameOf(operatorTarget(names)),
    because: "The operator goes last, when it has nothing left to remove. See docs/guide/operator.md#remove.",
    risk: "low",
  };
  if (service.method === "chart") return [chartStep(observation, said, inputs)];
  const targets = manifestObjects(inputs.files.operator.name, inputs.files.operator.text)
    .filter(({ kind }) => kind !== "Namespace")
    .map(targetOf);
  return [step("delete-objects", said, { targets, afterUndo: { rollouts: [{ workload: operatorTarget(names) }] } })];
}

function chartStep(
  { names, service }: Observation,
  said: StepText,
  { chartTool, connection = [] }: UninstallInputs,
): Step {
  const release = service.release ?? { name: names.chart.release, namespace: names.namespaces.operator };
  const args = [
    "uninstall",
    release.name,
    "--namespace",
    release.namespace,
    "--wait",
    ...withoutHooks(names),
    ...connection,
  ];
  const until = [{ target: operatorTarget(names), exists: false } as const];
  const reversible = "Helm deletes the record of the release; vendorctl install --method chart installs it again";
  const command = `${CHART_TOOL} ${args.join(" ")}`;
  if (chartTool) {
    return runToolStep({ ...said, reversible }, { program: CHART_TOOL, args, hint: `run ${command}`, until });
  }
  return waitOutsideStep(
    { ...said, reversible, where: `${CHART_TOOL}, which is not on this machine` },
    { tell: [command], until },
  );
}

/** What the operator would have removed. */
function orphanSteps(observation: Observation): Step[] {
  if (hasOperator(observation)) return [];
  return [
    step(
      "remove-orphans",
      {
        id: "remove-orphans",
        title: "Remove what the operator installed",
        where: "the whole cluster",
        because: "No operator runs that would remove it. See docs/guide/install.md#uninstall.",
        risk: "high",
      },
      {},
    ),
  ];
}

function endpointMapSteps({ names, service }: Observation): Step[] {
  const { endpointMap } = service;
  if (!endpointMap || endpointMap.metadata.namespace !== names.namespaces.operator) return [];
  const target = targetOf(endpointMap);
  return [
    deleteObjectStep(
      {
        id: "remove-endpoint-map",
        title: "Remove the API endpoint ConfigMap",
        where: nameOf(target),
        because: "Only the operator reads it, and the operator is removed.",
      },
      { target },
    ),
  ];
}

/** A namespace is not gone while a kubelet that is down still has to confirm its pods. */
function lostPodSteps({ nodes, names }: Observation): Step[] {
  const late = nodes.filter(({ ready }) => !ready).map(({ name }) => name);
  if (late.length === 0) return [];
  const { operator, system, apiServerBeforeV331 } = names.namespaces;
  return [
    step(
      "forget-lost-pods",
      {
        id: "forget-lost-pods",
        title: "Delete pods on nodes that are down",
        where: late.join(", "),
        because: "A namespace is deleted only after its pods, and a kubelet that is down confirms none.",
        risk: "low",
      },
      { namespaces: [operator, system, apiServerBeforeV331] },
    ),
  ];
}

function namespaceSteps({ names }: Observation, { files }: UninstallInputs): Step[] {
  const own = manifestObjects(files.operator.name, files.operator.text).filter(({ kind }) => kind === "Namespace");
  const plain: Target = { apiVersion: "v1", kind: "Namespace", name: names.namespaces.operator };
  const targets = [
    ...(own.length > 0 ? own.map(targetOf) : [plain]),
    ...[names.namespaces.apiServerBeforeV331, names.namespaces.system].map((name) => ({ ...plain, name })),
  ];
  return [
    step(
      "delete-objects",
      {
        id: "remove-namespaces",
        title: "Remove the service's namespaces",
        where: targets.map(({ name }) => name).join(", "),
        because: "They were created for the service; everything in them is deleted.",
        risk: "low",
        reversible: true,
      },
      { targets },
    ),
  ];
}

/** After everything that can be rolled back, and when no agent is left that would restore what is removed. */
function cleanNodesSteps(observation: Observation, inputs: UninstallInputs): Step[] {
  const { nodes, names, service } = observation;
  // Nodes of the public system are cleaned by its own tools.
  const targets = nodes.filter(({ labels }) => labels["kubernetes.io/os"] !== "windows").map(({ name }) => name);
  const image = agentImage(observation, inputs);
  if (names.dialect !== "vendor" || targets.length === 0 || image === undefined) return [];
  const cni = {
    binDir: hostPathOf(service.nodeAgents, "cni-bin-dir") ?? "/opt/cni/bin",
    confDir: hostPathOf(service.nodeAgents, "cni-conf-dir") ?? "/etc/cni/net.d",
  };
  return [
    step(
      "clean-nodes",
      {
        id: "clean-nodes",
        title: "Remove the service from every node",
        where: targets.length > MOST_NAMED ? `${targets.length} nodes` : targets.join(", "),
        because:
          "Agents leave interfaces, routes, nftables tables, BPF programs and CNI files in place when they stop, so that traffic goes on. See docs/guide/install.md#uninstall.",
        risk: "high",
        reversible: "pods that have addresses of the service lose their network, and must be restarted",
      },
      { image, nodes: targets, cni },
    ),
  ];
}

interface PodTemplate {
  template?: {
    spec?: {
      containers?: { image?: string }[];
      volumes?: { name: string; hostPath?: { path?: string } }[];
    };
  };
}

const templateOf = (workload: KubeObject | undefined) =>
  (workload?.["spec"] as PodTemplate | undefined)?.template?.spec;

function hostPathOf(workload: KubeObject | undefined, volume: string): string | undefined {
  return templateOf(workload)?.volumes?.find(({ name }) => name === volume)?.hostPath?.path;
}

/** The image that the nodes have: the agents', else the operator's, else the published one. */
function agentImage({ service }: Observation, { files }: UninstallInputs): string | undefined {
  const published = manifestObjects(files.operator.name, files.operator.text).find(({ kind }) => kind === "Deployment");
  return [service.nodeAgents, service.operator, published]
    .map((workload) => templateOf(workload)?.containers?.[0]?.image)
    .find((image) => image !== undefined);
}

function definitionSteps(observation: Observation, { removeCrds, files }: UninstallInputs): Step[] {
  if (!removeCrds) return [];
  const published = manifestObjects(files.definitions.name, files.definitions.text).map(targetOf);
  const known = new Set(published.map(({ name }) => name));
  const seen = observation.crds.filter(({ name }) => !known.has(name)).map(({ name }) => definition(name));
  const lost = userResources(observation);
  return [
    step(
      "delete-objects",
      {
        id: "remove-definitions",
        title: `Remove the CRDs and their resources`,
        where: `${published.length + seen.length} definitions`,
        because: "--remove-crds: deleting a CRD deletes all of its resources.",
        risk: "high",
        reversible:
          lost.length === 0
            ? "the API server deletes the resources with their CRDs"
            : `cannot be restored: ${namesOf(lost)}`,
      },
      { targets: [...published, ...seen] },
    ),
  ];
}

const definition = (name: string): Target => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  name,
});

/** What people made of the service's own kinds, and would lose with the definitions. */
function userResources({ v3, service, names }: Observation): KubeObject[] {
  const { key, value } = names.labels.createdBy;
  const made = [...v3.globalNetworkPolicies, ...v3.networkPolicies, ...v3.hostEndpoints, ...v3.tiers];
  const own = made.filter(
    ({ kind, metadata }) =>
      metadata.labels?.[key] !== value && !(kind === names.kinds.tier.kind && BUILT_IN_TIERS.has(metadata.name)),
  );
  const installed = service.installation !== undefined;
  const pools = service.pools.filter(
    ({ metadata }) => !installed || !metadata.labels?.["app.kubernetes.io/managed-by"],
  );
  return [...own, ...pools.filter((pool) => pool.apiVersion !== groupVersion(names.groups.operator))];
}

const BUILT_IN_TIERS = new Set(["default", "adminnetworkpolicy", "baselineadminnetworkpolicy"]);
const MOST_NAMED = 8;

function namesOf(objects: readonly KubeObject[]): string {
  const shown = objects.slice(0, MOST_NAMED).map((object) => nameOf(targetOf(object)));
  const more = objects.length - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

const count = (n: number) => `${n} ${n === 1 ? "resource" : "resources"} of yours`;

function provedStep({ removeCrds }: UninstallInputs): Step {
  return step(
    "prove-removed",
    {
      id: "prove-removed",
      title: "Verify that no object is left",
      where: "the whole cluster",
      because:
        "An uninstall is complete when the API server has no object of the service. See docs/guide/install.md#uninstall.",
    },
    { definitionsStay: !removeCrds },
  );
}

function notesOf(observation: Observation, { removeCrds }: UninstallInputs): string[] {
  const lost = userResources(observation);
  const notes = [
    "Pods keep their network until the nodes are cleaned. Then restart them; they and new pods wait for another network.",
  ];
  if (isEbpfOn(observation) && isProxyManaged(observation) && observation.proxy.parked) {
    notes.push("The operator restores kube-proxy before it disables eBPF.");
  }
  if (!removeCrds) {
    notes.push(
      `The CRDs stay, with ${lost.length === 0 ? "no resource of yours" : count(lost.length)}. To remove them too: vendorctl uninstall --remove-crds`,
    );
  } else if (lost.length > 0) notes.push(`Deleted with the CRDs, without a rollback: ${namesOf(lost)}.`);
  const down = observation.nodes.filter(({ ready }) => !ready).map(({ name }) => name);
  if (down.length > 0) {
    notes.push(
      `Not ready: ${down.join(", ")}. A node that is down is cleaned when it returns, or by vendor node remove --yes on it.`,
    );
  }
  return notes;
}
