import type { Dataplane } from "../../../api/dataplane.ts";
import type { Condition, KubeObject } from "../../../api/object.ts";
import { CLUSTER_KINDS } from "../../../api/tables/cluster-kinds.ts";
import { SERVICE_PROXY } from "../../../api/tables/kube-proxy.ts";
import type { Settle } from "../../actions/objects/settle.ts";
import { nameOf } from "../../actions/objects/target.ts";
import type { Budget } from "../../canary/budget.ts";
import { type CanaryChoice, type CanaryWatch, chooseCanary, watchOf } from "../../canary/canary-plan.ts";
import { kindOf } from "../../cluster-facts.ts";
import { fieldAt } from "../../field-at.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import {
  atPath,
  dataplaneName,
  dataplaneTitle,
  isEbpfOn,
  isProxyManaged,
  leavesProxyRules,
  removesProxyRulesByOrder,
  requestedDataplane,
  singleton,
} from "../cluster-view.ts";
import { type ApiAddress, chooseApiAddress, endpointMapStep } from "../install/api-address.ts";
import { operatorNameserverSteps } from "../install/operator-nameserver.ts";
import { CONFLICT, type ProxyMethod, proxyMethod } from "../kube-proxy/proxy-method.ts";
import { disableProxySteps, leaveIpvsStep, leaveRulesStep, restoreProxySteps } from "../kube-proxy/proxy-steps.ts";
import { bothEnds, type WavesInputs } from "../node-waves.ts";
import { errors } from "../plan-errors.ts";
import { mergePatchStep, step, waitForStatusStep } from "../steps.ts";
import { withCanary } from "./canary-steps.ts";
import { holdStep, leftHeld, planWaves, releaseSteps, turnedStep } from "./waves.ts";

export interface SwitchInputs {
  to: Dataplane;
  apiServer?: ApiAddress;
  /** Goes back to the nftables data plane where no service proxy would serve it. */
  force?: boolean;
  /** One node first, then a few at a time; all at once where it is left out. */
  waves?: WavesInputs;
  /** What may be lost of the traffic that is measured meanwhile; not measured where it is left out. */
  budget?: Budget;
  command: string;
}

/** From one data plane to the other. In both directions Services are always served. */
export function planSwitch(observation: Observation, inputs: SwitchInputs): Plan {
  const { service, names } = observation;
  if (service.method === "manifest") throw errors.SWITCH_NEEDS_OPERATOR();
  if (!service.installation) throw errors.SWITCH_NOT_INSTALLED();
  const waves = inputs.waves ? planWaves(observation, inputs.to, inputs.waves) : leftHeld(observation);
  const canary = canaryOf(observation, inputs, waves);
  const choice: Choice = { ...inputs, waves, ...("inputs" in canary && { canary: watchOf(canary.inputs) }) };
  const part = inputs.to === "BPF" ? towardsEbpf(observation, choice) : towardsStandard(observation, choice);
  if (isSwitched(observation, inputs, part.steps)) {
    return makePlan({
      procedure: "switch",
      names: names.dialect,
      title: `The data plane is ${dataplaneTitle(inputs.to)} already`,
      command: inputs.command,
      observed: fingerprint(observation),
      steps: [],
      notes: [],
    });
  }
  const { steps, notes } = withCanary(part, canary);
  return makePlan({
    procedure: "switch",
    names: names.dialect,
    title: `Switch to ${dataplaneTitle(inputs.to)} (cluster kind ${kindOf(observation)})`,
    command: inputs.command,
    observed: fingerprint(observation),
    steps,
    notes,
  });
}

/** Steps that change nothing once the data plane and kube-proxy are as asked for. */
const CONFIRMING = new Set([
  "select-dataplane",
  "network-available",
  "prove-dataplane",
  "park-proxy",
  "proxy-settled",
  "proxy-serves",
]);

/** Whether the cluster runs what is asked for, all of it rolled out and reported healthy: then there is nothing to switch. */
function isSwitched(
  observation: Observation,
  { to, apiServer }: Pick<SwitchInputs, "to" | "apiServer">,
  steps: readonly Step[],
): boolean {
  const { service, names, proxy } = observation;
  const ebpf = to === "BPF";
  if (requestedDataplane(observation) !== to || isEbpfOn(observation) !== ebpf) return false;
  // Nodes that serve have found the API server; only an address that is given is still to be written.
  const needless = (id: string) => CONFIRMING.has(id) || (apiServer === undefined && id === "endpoint-map");
  if (steps.some(({ id }) => !needless(id))) return false;
  const hostPorts = fieldAt(service.installation, names.fields.hostPorts) ?? null;
  if (ebpf && hostPorts !== null) return false;
  const runs = proxy.daemonSet !== undefined && !proxy.parked;
  if (runs && proxy.pods.ready < proxy.pods.wanted) return false;
  if (ebpf ? runs && !leavesProxyRules(observation) : proxy.parked !== undefined) return false;
  return isSettled(service.statuses.find(({ metadata }) => metadata.name === names.statuses.network));
}

function isSettled(status: KubeObject | undefined): boolean {
  const { conditions = [] } = (status?.["status"] ?? {}) as { conditions?: Condition[] };
  const is = (type: string) => conditions.find((condition) => condition.type === type)?.status === "True";
  return is("Available") && !is("Progressing") && !is("Degraded");
}

/** What was asked for, with what follows from it. */
interface Choice extends Pick<SwitchInputs, "to" | "apiServer" | "force"> {
  waves: readonly string[][];
  canary?: CanaryWatch;
}

function canaryOf(
  observation: Observation,
  { to, budget, force }: SwitchInputs,
  waves: readonly string[][],
): CanaryChoice {
  if (budget === undefined) return { notMeasured: "--canary-traffic is off" };
  if (isEbpfOn(observation) === (to === "BPF")) return { notMeasured: "the data plane does not change" };
  return chooseCanary(observation, { budget, first: bothEnds(waves), switches: true, ...(force && { force }) });
}

interface Part {
  steps: Step[];
  notes: string[];
}

function towardsEbpf(observation: Observation, choice: Choice): Part {
  const { proxy } = observation;
  const way = proxyMethod(observation);
  const managed = isProxyManaged(observation) && operatorHandles(observation, way);
  const before: Step[] = [...addressSteps(observation, choice.apiServer)];
  if (proxy.daemonSet && !proxy.parked && proxy.mode === "ipvs") before.push(leaveIpvsStep(observation));
  const byUs = !managed || removesProxyRulesByOrder(observation);
  if (way.way === "leave-rules" && byUs && !leavesProxyRules(observation)) {
    before.push(leaveRulesStep(observation, way.because, observation.service.dataplaneConfiguration === undefined));
  }
  const after = managed && proxy.daemonSet ? [proxyStatusStep(observation)] : disableProxySteps(observation, way);
  return {
    steps: [...before, ...dataplaneSteps(observation, choice), ...after],
    notes: [...hostPortsNote(observation), ...proxyNotes(observation, way, managed)],
  };
}

function addressSteps(observation: Observation, given: ApiAddress | undefined): Step[] {
  const choice = chooseApiAddress(observation, given);
  if (choice.is === "unknown") throw errors.SWITCH_NO_ADDRESS(choice.why);
  if (choice.is === "not needed") return [];
  const map = choice.written
    ? []
    : [
        ...keepDataplaneSteps(observation),
        endpointMapStep(observation, choice.address, choice.from, {
          afterUndo: { status: { statuses: partsThere(observation) }, ...withoutAddress(observation) },
        }),
      ];
  // The operator resolves the name before the ConfigMap names it, and after an undo too.
  return [...operatorNameserverSteps(observation, "wait after undo"), ...map];
}

const FALLBACK = ["status", "dataplaneFallback"];

/** An operator that only lacked the address would switch every node once it has it: what runs is asked for by its name first. */
function keepDataplaneSteps(observation: Observation): Step[] {
  const { names, service } = observation;
  if (fieldAt(service.installation, FALLBACK.join(".")) === undefined) return [];
  const target = singleton(names, "installation");
  const running = runningName(observation);
  return [
    mergePatchStep(
      {
        id: "keep-dataplane",
        title: "Keep the data plane for now",
        where: nameOf(target),
        because:
          "The operator would enable eBPF on all nodes as soon as it has the address; this way they follow in waves. See docs/guide/switch.md#waves.",
        risk: "none",
      },
      {
        target,
        patch: atPath(names.fields.linuxDataplane, running),
        afterApply: { expect: [{ target, path: FALLBACK, equals: null }] },
      },
    ),
  ];
}

/**
 * Removing the map restarts the agents, but changes no generation of the Installation that their status could be compared with: what is
 * waited for is the operator's own change. If there was a map before, agents keep its address.
 */
function withoutAddress({ names, service }: Observation): Pick<Settle, "expect" | "rollouts"> {
  if (service.endpointMap) return {};
  const agents = { namespace: names.namespaces.system, name: names.workloads.node };
  const target = { apiVersion: "apps/v1", kind: "DaemonSet", ...agents };
  return {
    expect: [{ target, path: ["spec", "template", "spec"], lacks: names.endpointMap.hostKey }],
    rollouts: [{ workload: target }],
  };
}

function towardsStandard(observation: Observation, choice: Choice): Part {
  const way = proxyMethod(observation);
  // It restores one that it disabled; one that never was, it cannot bring.
  const managed = isProxyManaged(observation) && operatorHandles(observation, way) && way.way !== "absent";
  const served = CLUSTER_KINDS[kindOf(observation)].platformServesServices;
  if (way.way === "absent" && way.back === undefined && !served && !choice.force) {
    throw errors.SWITCH_NO_SERVICE_PROXY(SERVICE_PROXY[kindOf(observation)].afterInstall.how);
  }
  const restore = managed ? [] : restoreProxySteps(observation, way);
  const notes = managed ? ["The operator manages kube-proxy: it restores it before it disables eBPF."] : [];
  const after = managed && observation.proxy.daemonSet ? [proxyStatusStep(observation)] : [];
  return {
    steps: [...restore, ...dataplaneSteps(observation, choice), ...after],
    notes: [...notes, ...hostPortsBackNote(observation)],
  };
}

/** The specification's merge patch, and the proof that it took effect; in waves no node follows before it is released. */
function dataplaneSteps(observation: Observation, { to, waves, canary }: Choice): Step[] {
  const inWaves = waves.length > 0;
  return [
    ...(inWaves ? [holdStep(observation, to, waves)] : []),
    selectStep(observation, to),
    ...(inWaves ? [turnedStep(observation, to), ...releaseSteps(to, waves, canary)] : []),
    ...provenSteps(observation, to),
  ];
}

function selectStep(observation: Observation, to: Dataplane): Step {
  const { names } = observation;
  const target = singleton(names, "installation");
  const word = dataplaneName(names, to);
  const select = atPath(names.fields.linuxDataplane, word);
  const patch = to === "BPF" ? merged(select, atPath(names.fields.hostPorts, null)) : select;
  const ebpfWas = isEbpfOn(observation);
  const configuration = singleton(names, "dataplaneConfiguration", "stored");
  return step(
    "select-dataplane",
    {
      id: "select-dataplane",
      title: `Set linuxDataplane to ${word}`,
      where: nameOf(target),
      because:
        "The operator switches the data plane when linuxDataplane of the Installation changes; eBPF always serves host ports, so hostPorts becomes null with it. See docs/guide/switch.md.",
      risk: "medium",
    },
    {
      target,
      patch,
      field: names.fields.linuxDataplane,
      was: runningName(observation),
      afterUndo: {
        status: { statuses: partsThere(observation) },
        ...(observation.service.dataplaneConfiguration && {
          expect: [
            {
              target: configuration,
              path: names.fields.ebpfEnabled.split("."),
              equals: ebpfWas,
            },
          ],
        }),
      },
    },
  );
}

/** The data plane that is there, as the installation has it or as the operator computed it. */
function runningName({ service, names }: Observation): string {
  const { linuxDataplane } = names.fields;
  const computed = linuxDataplane.replace(/^spec\./, "status.computed.");
  const word = fieldAt(service.installation, linuxDataplane) ?? fieldAt(service.installation, computed);
  return typeof word === "string" ? word : names.dataplanes.standard[0];
}

/** The parts that roll out again with the data plane: how the API server is reached changes for all of them. */
function partsThere({ service, names }: Observation): string[] {
  const parts = [
    [names.statuses.apiServer, service.apiServer],
    [names.statuses.flowLogs, service.flowLogs],
    [names.statuses.flowUI, service.flowUI],
  ] as const;
  return [names.statuses.network, ...parts.filter(([, object]) => object !== undefined).map(([status]) => status)];
}

/** Waits until the operator says that the network works, and every node has shown that it does. */
export function provenSteps(observation: Observation, to: Dataplane): Step[] {
  const { names } = observation;
  const statuses = partsThere(observation);
  return [
    waitForStatusStep(
      {
        id: "network-available",
        title: "Wait for the rollout",
        where: `${names.kinds.status.kind} ${statuses.join(", ")}`,
        because:
          "The operator rolls the change out and reports in its status when it is complete. See docs/guide/operator.md#status.",
      },
      { statuses },
    ),
    step(
      "prove-dataplane",
      {
        id: "prove-dataplane",
        title: to === "BPF" ? "Verify eBPF and Services on every node" : "Verify the data plane on every node",
        where: "all nodes",
        because:
          "kube-proxy is disabled only after the agent of every node has verified that eBPF serves Services. See docs/guide/switch.md#to-ebpf.",
      },
      { to },
    ),
  ];
}

/** Whether an operator that was asked to look after the proxy can: of tools and owners it only says whose the proxy is. */
export function operatorHandles(observation: Observation, { way }: ProxyMethod): boolean {
  const leaves = SERVICE_PROXY[kindOf(observation)].afterInstall.action === "leave-its-rules-alone";
  return (
    way === "park" || way === "absent" || (way === "leave-rules" && leaves && observation.names.dialect === "vendor")
  );
}

export function proxyStatusStep({ names }: Pick<Observation, "names">): Step {
  return waitForStatusStep(
    {
      id: "proxy-settled",
      title: "Wait for kube-proxy to be settled",
      where: `${names.kinds.status.kind} ${names.statuses.serviceProxy}`,
      because:
        "serviceProxyManagement is Enabled: the operator disables and restores kube-proxy itself. See docs/guide/kube-proxy-replacement.md.",
    },
    { statuses: [names.statuses.serviceProxy] },
  );
}

function hostPortsNote({ service, names }: Observation): string[] {
  const was = fieldAt(service.installation, names.fields.hostPorts);
  if (was === undefined || was === null) return [];
  return [
    `hostPorts is ${JSON.stringify(was)} and becomes null, because eBPF always serves host ports; vendorctl rollback restores it.`,
  ];
}

function hostPortsBackNote({ service, names }: Observation): string[] {
  if (names.dialect === "calico" || fieldAt(service.installation, names.fields.hostPorts) !== undefined) return [];
  return ["hostPorts is not set, so host ports are served with the nftables data plane too."];
}

function proxyNotes(observation: Observation, way: ProxyMethod, managed: boolean): string[] {
  const kind = kindOf(observation);
  if (managed && way.way === "park") {
    return ["The operator disables kube-proxy when every node has verified that eBPF serves."];
  }
  if (way.way === "absent") return [`There is no kube-proxy to disable (${CLUSTER_KINDS[kind].title}).`];
  if (way.way === "leave-rules") return [`kube-proxy stays, and its rules are kept. ${CONFLICT}`];
  return [];
}

function merged(a: Record<string, unknown>, b: Record<string, unknown>): Record<string, unknown> {
  const out: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const mine = out[key];
    out[key] = isRecord(mine) && isRecord(value) ? merged(mine, value) : value;
  }
  return out;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
