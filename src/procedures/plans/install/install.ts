import { isDeepStrictEqual } from "node:util";
import type { Dataplane } from "../../../api/dataplane.ts";
import type { Condition, KubeObject } from "../../../api/object.ts";
import { rolledOut } from "../../../api/protocol/rollout.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import { ENDPOINT_RULES, type EndpointRule } from "../../../api/tables/endpoint-rules.ts";
import { SERVICE_PROXY } from "../../../api/tables/kube-proxy.ts";
import { INSTALLED_RELEASE } from "../../../api/tables/version-gates.ts";
import type { Workload } from "../../../api/workload-objects.ts";
import { nameOf, targetOf } from "../../actions/objects/target.ts";
import { kindOf } from "../../cluster-facts.ts";
import { fieldAt } from "../../field-at.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { dataplaneTitle, leavesProxyRules, operatorTarget, requestedDataplane } from "../cluster-view.ts";
import { type ProxyMethod, proxyMethod } from "../kube-proxy/proxy-method.ts";
import { disableProxySteps, leaveIpvsStep, leaveRulesStep } from "../kube-proxy/proxy-steps.ts";
import { errors } from "../plan-errors.ts";
import { applyObjectsStep, waitForRolloutStep, waitForStatusStep } from "../steps.ts";
import { operatorHandles, provenSteps, proxyStatusStep } from "../switch/switch.ts";
import { type AddressChoice, type ApiAddress, chooseApiAddress, endpointMapStep } from "./api-address.ts";
import { type CustomResourceWishes, customResources } from "./custom-resources.ts";
import { manifestObjects } from "./edit-manifest.ts";
import { type InstallFiles, installOperatorSteps } from "./install-operator.ts";
import { operatorNameserverSteps } from "./operator-nameserver.ts";

export interface InstallInputs extends Pick<CustomResourceWishes, "edits" | "flowLogs" | "flowUI" | "podCidr"> {
  method: "operator" | "chart";
  /** What was asked for; eBPF where nothing was, and where it can be. */
  dataplane?: Dataplane;
  apiServer?: ApiAddress;
  files: InstallFiles;
  /** Whether the chart tool is on this machine; without it the plan says what to run. */
  chartTool: boolean;
  /** A folder, an archive or a reference to install the chart from, instead of the repository's. */
  chart?: string;
  /** Flags that make the chart tool mean this cluster. */
  connection?: readonly string[];
  command: string;
}

/** What the plan was decided to be, before there are steps. */
interface Decision {
  mode: Dataplane;
  address: AddressChoice;
  method: ProxyMethod;
  /** eBPF comes by itself: the manual steps are not needed. */
  byDefault: boolean;
  /** The operator is asked to look after the proxy. */
  managed: boolean;
}

/** The specification's eight steps of installation, as this cluster needs them. */
export function planInstall(observation: Observation, inputs: InstallInputs): Plan {
  refuseOther(observation, inputs);
  if (isInstalled(observation, inputs)) {
    const runs = requestedDataplane(observation) ?? "BPF";
    return makePlan({
      procedure: "install",
      names: observation.names.dialect,
      title: `${releaseOf(inputs)} is installed already, with ${dataplaneTitle(runs)}`,
      command: inputs.command,
      observed: fingerprint(observation),
      steps: [],
      notes: [],
    });
  }
  const decision = decide(observation, inputs);
  const text = customResources(observation, inputs.files.customResources.text, {
    ...inputs,
    dataplane: decision.mode,
    writeDataplane: !decision.byDefault,
    proxyManagement: managementOf(observation, decision),
  });
  return makePlan({
    procedure: "install",
    names: observation.names.dialect,
    title: `Install ${releaseOf(inputs)} with ${dataplaneTitle(decision.mode)} (cluster kind ${kindOf(observation)}), by ${inputs.method}`,
    command: inputs.command,
    observed: fingerprint(observation),
    steps: stepsOf(observation, inputs, decision, text),
    notes: notesOf(observation, inputs, decision, text),
  });
}

/** Whether an installation is complete and has all that is asked for; one that is not is completed. */
function isInstalled(observation: Observation, inputs: InstallInputs): boolean {
  const { service, names } = observation;
  const { edits, apiServer, podCidr, flowLogs, flowUI } = inputs;
  if (!service.installation || !service.apiServer || service.version !== releaseOf(inputs)) return false;
  if (apiServer !== undefined || podCidr !== undefined) return false;
  if ((flowLogs && !service.flowLogs) || (flowUI && !service.flowUI)) return false;
  if (!edits.every(({ path, value }) => isDeepStrictEqual(fieldAt(service.installation, path.join(".")), value)))
    return false;
  const { network, ipPools, apiServer: api } = names.statuses;
  const isAvailable = (name: string) => {
    const status = service.statuses.find(({ metadata }) => metadata.name === name);
    const conditions = (fieldAt(status, "status.conditions") ?? []) as Condition[];
    return conditions.some(({ type, status: is }) => type === "Available" && is === "True");
  };
  const operator = service.operator as Workload | undefined;
  const operates = operator !== undefined && operator.spec?.replicas !== 0 && rolledOut(operator);
  return operates && [network, ipPools, api].every(isAvailable);
}

function decide(observation: Observation, inputs: InstallInputs): Decision {
  const { dataplane, apiServer, method } = inputs;
  const { names } = observation;
  if (editOf(inputs, names.fields.linuxDataplane) !== undefined) {
    throw errors.INSTALL_EDIT_REFUSED(
      "the data plane is not set by --set.",
      "vendorctl install --dataplane bpf, or --dataplane standard",
    );
  }
  const way = proxyMethod(observation);
  const kind = kindOf(observation);
  const address = chooseApiAddress(observation, apiServer);
  if (dataplane === "BPF" && address.is === "unknown") throw errors.INSTALL_NO_STABLE_ADDRESS(address.why);
  const mode = dataplane ?? (address.is === "unknown" ? "Nftables" : "BPF");
  const isDefault = CLUSTER_KINDS[kind].ebpfByDefault && method === "operator" && names.dialect === "vendor";
  const byDefault = mode === "BPF" && dataplane === undefined && isDefault && platformReports(kind, address);
  const asked = editOf(inputs, names.fields.serviceProxyManagement);
  const able = mode === "BPF" && way.way !== "absent" && operatorHandles(observation, way);
  // The public system's operator parks the proxy at once, so there it is done here, after the proof, unless asked for.
  const managed = able && (asked === undefined ? names.dialect === "vendor" : asked === "Enabled");
  // Before there is a data plane, only a service proxy leads the operator to the API server's cluster IP.
  const proxyServes = observation.proxy.daemonSet !== undefined && !observation.proxy.parked;
  const leadsThere = CLUSTER_KINDS[kind].platformServesServices || proxyServes;
  return { mode, address: byDefault && leadsThere ? notNeeded(address) : address, method: way, byDefault, managed };
}

/** What the published file says is for people without vendorctl. The public system's file has no such field. */
function managementOf({ names }: Observation, { managed, method }: Decision): "Enabled" | "Disabled" | undefined {
  if (managed) return "Enabled";
  return names.dialect === "vendor" && method.way !== "absent" ? "Disabled" : undefined;
}

function editOf({ edits }: InstallInputs, field: string): unknown {
  return edits.find(({ path }) => path.join(".") === field)?.value;
}

/** If the operator finds the address by itself. A given one is written whatever the platform reports. */
function platformReports(kind: ClusterKind, address: AddressChoice): boolean {
  if (address.is !== "known") return address.is === "not needed";
  const { operatorReads }: EndpointRule = ENDPOINT_RULES[kind];
  return operatorReads !== undefined && address.sources.includes(operatorReads);
}

function notNeeded(address: AddressChoice): AddressChoice {
  return address.is === "known" && !address.written
    ? { is: "not needed", because: `the operator reads it from the platform: ${address.from}` }
    : address;
}

function stepsOf(observation: Observation, inputs: InstallInputs, decision: Decision, text: string): Step[] {
  const { names, proxy } = observation;
  const { mode, address, method: way, managed } = decision;
  const ebpf = mode === "BPF";
  const objects = manifestObjects(inputs.files.customResources.name, text);
  const writesMap = address.is === "known" && !address.written && (ebpf || inputs.apiServer !== undefined);
  const ipvs = ebpf && proxy.daemonSet && !proxy.parked && proxy.mode === "ipvs";
  const leaveRules = ebpf && way.way === "leave-rules" && !managed && !leavesProxyRules(observation);
  return [
    ...(writesMap
      ? [namespaceStep(observation, inputs.files), endpointMapStep(observation, address.address, address.from)]
      : []),
    ...installOperatorSteps(observation, inputs),
    ...(ebpf && !(inputs.method === "chart" && names.dialect === "vendor") ? operatorNameserverSteps(observation) : []),
    waitForRolloutStep(
      {
        id: "operator-ready",
        title: "Wait for the operator",
        where: nameOf(operatorTarget(names)),
        because:
          "The operator must run before it can act on the custom resources. See docs/guide/install.md#the-steps.",
      },
      { workload: operatorTarget(names) },
    ),
    ...(ipvs ? [leaveIpvsStep(observation)] : []),
    ...(leaveRules ? [leaveRulesStep(observation, way.because, true)] : []),
    customResourcesStep(objects, text, ebpf),
    completeStep(observation, objects),
    ...provenSteps(observation, mode).slice(1),
    ...(ebpf ? (managed ? [proxyStatusStep(observation)] : disableProxySteps(observation, way)) : []),
  ];
}

/** The namespace as the operator's manifest has it, so that nothing of it changes when that is applied. */
function namespaceStep({ names }: Observation, files: InstallFiles): Step {
  const published = manifestObjects(files.operator.name, files.operator.text).find(({ kind }) => kind === "Namespace");
  const plain = { apiVersion: "v1", kind: "Namespace", metadata: { name: names.namespaces.operator } };
  const namespace = published ?? plain;
  return applyObjectsStep(
    {
      id: "operator-namespace",
      title: "Create the operator's namespace",
      where: nameOf(targetOf(namespace)),
      because: "The API endpoint ConfigMap is in the operator's namespace and is read when the operator starts.",
    },
    { objects: [namespace] },
  );
}

/** Steps 5 and 6. The text is in the step, so that a plan shows it and keeps its comments. */
function customResourcesStep(objects: readonly KubeObject[], text: string, ebpf: boolean): Step {
  return {
    ...applyObjectsStep(
      {
        id: "custom-resources",
        title: `Create the custom resources`,
        where: objects.map((object) => nameOf(targetOf(object))).join(", "),
        because: ebpf
          ? "The operator installs what these resources ask for; linuxDataplane is BPF, so eBPF comes with the installation. See docs/guide/install.md#the-steps."
          : "The operator installs what these resources ask for. See docs/guide/install.md#the-steps.",
        risk: "medium",
      },
      { objects },
    ),
    inputs: { objects, text },
  };
}

function completeStep({ names }: Observation, objects: readonly KubeObject[]): Step {
  const has = (noun: "apiServer" | "flowLogs" | "flowUI") =>
    objects.some(({ kind }) => kind === names.kinds[noun].kind) ? [names.statuses[noun]] : [];
  const statuses = [
    names.statuses.network,
    names.statuses.ipPools,
    ...has("apiServer"),
    ...has("flowLogs"),
    ...has("flowUI"),
  ];
  return waitForStatusStep(
    {
      id: "installed",
      title: `Wait for ${statuses.slice(0, 3).join(", ")}`,
      where: names.kinds.status.kind,
      because:
        "The installation is complete when the operator reports every component as available. See docs/guide/operator.md#status.",
    },
    { statuses },
  );
}

function notesOf(observation: Observation, inputs: InstallInputs, decision: Decision, text: string): string[] {
  const kind = kindOf(observation);
  const { title } = CLUSTER_KINDS[kind];
  const { mode, address, byDefault, managed } = decision;
  const notes = [...creationNote(observation, mode), editsNote(observation, inputs, text)];
  if (byDefault) {
    notes.push(`eBPF is the default data plane here (${title}): no further step is needed.`);
  }
  if (mode === "Nftables" && address.is === "unknown") {
    notes.push(
      `Without a stable address of the API server eBPF cannot be enabled at install time (${address.why}). Later: vendorctl switch --to bpf --api-server HOST:PORT`,
    );
  } else if (mode === "Nftables") {
    notes.push("To switch to eBPF later: vendorctl switch --to bpf");
  }
  if (managed) {
    notes.push("From now on the operator manages kube-proxy (serviceProxyManagement: Enabled).");
  }
  if (inputs.method === "chart")
    notes.push("The chart is installed without its custom resources; vendorctl creates them.");
  return notes;
}

/** What was edited, line by line; the whole file is in the plan. */
function editsNote({ names }: Observation, { files }: InstallInputs, text: string): string {
  const published = new Set(files.customResources.text.split("\n"));
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !published.has(line));
  const file = names.manifests.customResources;
  if (lines.length === 0) return `${file} is created as it is published.`;
  const edited = lines.map((line) => line.trim()).join("; ");
  return `${file} is edited: ${edited}. See it whole with -o yaml, or --save-custom-resources FILE.`;
}

/** What would have been done when the cluster was made, where it was not. */
function creationNote(observation: Observation, mode: Dataplane): string[] {
  const { atInstall, afterInstall } = SERVICE_PROXY[kindOf(observation)];
  const { proxy } = observation;
  const late = ["skip-phase", "disable-in-cluster-configuration", "install-flags"].includes(atInstall.action);
  if (mode !== "BPF" || !late || !proxy.daemonSet || proxy.parked) return [];
  const now =
    afterInstall.action === "not-shown" ? "its rules are kept, because it cannot be disabled later" : afterInstall.how;
  return [`kube-proxy runs. On a new cluster of this kind: ${atInstall.how}. On this cluster: ${now}.`];
}

/** The release that the operator's file brings; a chart, and the public system's operator, have versions of their own. */
function releaseOf({ method, files }: InstallInputs): string {
  const tag = method === "operator" ? /\/vendor:(v\d[\w.+-]*)/.exec(files.operator.text)?.[1] : undefined;
  return tag ?? INSTALLED_RELEASE;
}

function refuseOther(observation: Observation, inputs: InstallInputs): void {
  const { method, dataplane } = inputs;
  const { service } = observation;
  const release = releaseOf(inputs);
  if (service.method === "none") return;
  if (service.method !== method) throw errors.INSTALL_OTHER_METHOD(service.method, method);
  if (service.version !== undefined && service.version !== release) {
    throw errors.INSTALL_OTHER_VERSION(service.version, release);
  }
  const runs = requestedDataplane(observation);
  if (runs !== undefined && dataplane !== undefined && runs !== dataplane) {
    throw errors.INSTALL_OTHER_DATAPLANE(dataplaneTitle(runs), dataplane);
  }
}
