import type { Names } from "../../../api/names.ts";
import { INSTALLED_RELEASE } from "../../../api/tables/version-gates.ts";
import type { ApplyManifestInputs } from "../../actions/objects/apply-manifest.ts";
import { nameOf } from "../../actions/objects/target.ts";
import type { Observation } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { operatorTarget } from "../cluster-view.ts";
import { runToolStep, type StepText, step, waitOutsideStep } from "../steps.ts";
import { operatorNameserver } from "./operator-nameserver.ts";

/** A published file as it was read. */
export interface ReadFile {
  name: string;
  text: string;
  digest: string;
}

export interface InstallFiles {
  from: string;
  definitions: ReadFile;
  operator: ReadFile;
  customResources: ReadFile;
}

export const CHART_TOOL = "helm";

/** Earlier steps have deleted the custom resources, which is all that the hook of the chart does: no pod must start for it. */
export function withoutHooks({ dialect }: Names): string[] {
  return dialect === "vendor" ? ["--no-hooks"] : [];
}

/** What a plan knows of the chart tool. */
interface ChartInputs {
  chartTool: boolean;
  chart?: string;
  connection?: readonly string[];
}

/** Install step 3: definitions first, then the operator by the method asked for, without custom resources. */
export function installOperatorSteps(
  observation: Observation,
  inputs: { method: "operator" | "chart"; files: InstallFiles } & ChartInputs,
): Step[] {
  const { names } = observation;
  const { files } = inputs;
  const definitions = manifestStep(
    {
      id: "definitions",
      title: "Apply the CRDs",
      where: `${files.definitions.name} (${files.from})`,
      because: "The operator and the custom resources need their CRDs first. See docs/guide/install.md#the-steps.",
    },
    { file: files.definitions.name, from: files.from, digest: files.definitions.digest },
  );
  const said: StepText = {
    id: "operator",
    title: "Install the operator",
    where: nameOf(operatorTarget(names)),
    because:
      "The custom resources follow when the operator runs, so that they can be edited first. See docs/guide/install.md#the-steps.",
    risk: "low",
  };
  if (inputs.method === "chart") return [definitions, chartStep(observation, said, inputs)];
  const { name, digest } = files.operator;
  return [definitions, manifestStep(said, { file: name, from: files.from, digest })];
}

function manifestStep(said: StepText, inputs: ApplyManifestInputs): Step {
  return step("apply-manifest", said, inputs);
}

/** With the chart tool if it is installed; if not, the command is printed and waited for. */
function chartStep(observation: Observation, said: StepText, inputs: ChartInputs): Step {
  const { names } = observation;
  const { args, back } = chartCommands(observation, inputs);
  const target = operatorTarget(names);
  const until = [{ target, exists: true } as const];
  const gone = [{ target, exists: false } as const];
  const hint = `install ${CHART_TOOL}, or run it where it is installed: ${CHART_TOOL} ${args.join(" ")}`;
  if (inputs.chartTool) {
    return runToolStep(said, { program: CHART_TOOL, args, hint, until, back: { args: back, until: gone } });
  }
  const where = `${CHART_TOOL}, which is not on this machine`;
  return waitOutsideStep(
    { ...said, where },
    {
      tell: [`${CHART_TOOL} ${args.join(" ")}`],
      until,
      back: { tell: [`${CHART_TOOL} ${back.join(" ")}`], until: gone },
    },
  );
}

function chartCommands(
  observation: Observation,
  { chart, connection = [] }: ChartInputs,
): { args: string[]; back: string[] } {
  const { names } = observation;
  const { repository, name, release } = names.chart;
  const namespace = names.namespaces.operator;
  const nameserver = names.dialect === "vendor" ? operatorNameserver(observation) : undefined;
  const without = ["installation", "apiServer"].flatMap((part) => ["--set", `${part}.enabled=false`]);
  const dns = nameserver ? ["--set", "dnsPolicy=None", "--set", `dnsConfig.nameservers={${nameserver}}`] : [];
  const source = chart === undefined ? [`${repository}/${name}`, "--version", INSTALLED_RELEASE] : [chart];
  return {
    args: [
      "upgrade",
      "--install",
      release,
      ...source,
      "--namespace",
      namespace,
      "--create-namespace",
      ...without,
      ...dns,
      ...connection,
    ],
    back: ["uninstall", release, "--namespace", namespace, "--wait", ...withoutHooks(names), ...connection],
  };
}
