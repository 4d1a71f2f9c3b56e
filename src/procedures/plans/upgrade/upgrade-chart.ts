import type { Expectation } from "../../actions/objects/expectation.ts";
import { nameOf } from "../../actions/objects/target.ts";
import type { Observation } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { operatorTarget, singleton } from "../cluster-view.ts";
import { CHART_TOOL } from "../install/install-operator.ts";
import { runToolStep, type StepText, waitOutsideStep } from "../steps.ts";
import type { UpgradeFacts } from "./upgrade.ts";
import { errors } from "./upgrade-errors.ts";
import type { UpgradePath } from "./upgrade-path.ts";

/** The release is upgraded by the tool it belongs to: by ours where the tool is here, by the person where it is not. */
export function chartUpgradeStep(
  observation: Observation,
  path: UpgradePath,
  chart: NonNullable<UpgradeFacts["chart"]>,
): Step {
  const { names, service } = observation;
  const { name = names.chart.release, namespace = names.namespaces.operator, status } = service.release ?? {};
  if (status?.startsWith("pending")) throw errors.UPGRADE_CHART_PENDING(name, status);
  const source =
    chart.chart === undefined ? [`${names.chart.repository}/${names.chart.name}`, "--version", path.to] : [chart.chart];
  const args = ["upgrade", name, ...source, "--namespace", namespace, ...chart.connection, "--values"];
  const said: StepText = {
    id: "chart",
    title: "Upgrade the Helm release",
    where: nameOf(operatorTarget(names)),
    because: `An installation by the chart is upgraded by the chart of ${path.to}, with the values of release ${name}. See docs/guide/upgrade.md.`,
    risk: "medium",
  };
  const until = [upgraded(observation, path)];
  if (chart.tool) {
    const hint = `install ${CHART_TOOL}, or run it where it is installed`;
    return runToolStep(said, { program: CHART_TOOL, args: [...args, "-"], input: chart.values, hint, until });
  }
  const values = "values.yaml";
  return waitOutsideStep(
    { ...said, where: `${CHART_TOOL}, which is not on this machine` },
    {
      tell: [
        `run these where ${CHART_TOOL} is installed:`,
        `${CHART_TOOL} get values ${name} --namespace ${namespace} --output yaml > ${values}`,
        `${CHART_TOOL} ${args.join(" ")} ${values}`,
      ],
      until,
    },
  );
}

/** The public operator has a version of its own; there the installation shows when the service is upgraded. */
function upgraded({ names }: Observation, { to }: UpgradePath): Expectation {
  const version = to.replaceAll(".", "\\.");
  if (names.dialect === "calico") {
    const path = names.fields.statusVersion.split(".");
    return { target: singleton(names, "installation"), path, matches: `^${version}$` };
  }
  const path = ["spec", "template", "spec", "containers", "0", "image"];
  return { target: operatorTarget(names), path, matches: `:${version}(@|$)` };
}
