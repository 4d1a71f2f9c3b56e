import { writeFile } from "node:fs/promises";
import { parse } from "yaml";
import type { Dataplane } from "../../../api/dataplane.ts";
import type { Names } from "../../../api/names.ts";
import type { ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import type { Plan } from "../../../procedures/plan.ts";
import type { ApiAddress } from "../../../procedures/plans/install/api-address.ts";
import { planInstall } from "../../../procedures/plans/install/install.ts";
import { CHART_TOOL, type InstallFiles, type ReadFile } from "../../../procedures/plans/install/install-operator.ts";
import { digestOf } from "../../../releases/open-release-files.ts";
import type { ReleaseFiles } from "../../../releases/release-files.ts";
import { errors } from "../../errors.ts";
import type { Session } from "../../session.ts";
import { toolConnection } from "../../tool-connection.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { runProcedure } from "../runs/run-procedure.ts";
import type { FieldEdit } from "./install.flags.ts";

interface InstallFlags extends ProcedureFlags {
  kind?: ClusterKind;
  method: "operator" | "chart";
  dataplane?: Dataplane;
  apiServer?: ApiAddress;
  podCidr?: string;
  set?: FieldEdit[];
  flowLogs?: true;
  flowUi?: true;
  chart?: string;
  saveCustomResources?: string;
}

export async function install(session: Session, flags: InstallFlags): Promise<void> {
  const { kind, method, dataplane, apiServer, chart, podCidr, saveCustomResources } = flags;
  if (chart !== undefined && method !== "chart")
    throw errors.USAGE("--chart needs --method chart", "add --method chart");
  const edits = editsOf(flags);
  await runProcedure(session, flags, {
    procedure: "install",
    ...(kind && { kind }),
    dataplane: dataplane ?? "BPF",
    makePlan: async (observation, { command, files, tools }) => {
      const plan = planInstall(observation, {
        method,
        ...(dataplane && { dataplane }),
        ...(apiServer && { apiServer }),
        ...(chart !== undefined && { chart }),
        ...(podCidr !== undefined && { podCidr }),
        flowLogs: Boolean(flags.flowLogs || flags.flowUi),
        flowUI: Boolean(flags.flowUi),
        edits,
        files: await readInstallFiles(files, observation.names),
        connection: toolConnection(session),
        chartTool: method === "chart" && (await tools.find(CHART_TOOL)) !== undefined,
        command,
      });
      if (saveCustomResources !== undefined) await save(saveCustomResources, plan);
      return plan;
    },
    next: ["vendorctl status", "vendorctl proxy status"],
  });
}

/** The three files an installation is made from, each with what it was when the plan was made. */
async function readInstallFiles(files: ReleaseFiles, { manifests }: Names): Promise<InstallFiles> {
  return {
    from: files.from,
    definitions: await readRelease(files, manifests.operatorCrds),
    operator: await readRelease(files, manifests.operator),
    customResources: await readRelease(files, manifests.customResources),
  };
}

export async function readRelease(files: ReleaseFiles, name: string): Promise<ReadFile> {
  const text = await files.read(name);
  return { name, text, digest: digestOf(text) };
}

function editsOf({ set = [] }: InstallFlags): { path: readonly (string | number)[]; value: unknown }[] {
  return set.map(({ path, text }) => ({ path, value: yamlValue(text) }));
}

function yamlValue(text: string): unknown {
  try {
    return parse(text) as unknown;
  } catch (error) {
    throw errors.BAD_VALUE("--set", text, "a value that can be read as YAML").from(error);
  }
}

async function save(file: string, { steps }: Plan): Promise<void> {
  const text = steps.find(({ id }) => id === "custom-resources")?.inputs["text"];
  // Nothing is created where everything is there already.
  if (text === undefined) return;
  try {
    await writeFile(file, String(text));
  } catch (error) {
    throw errors.FILE_NOT_WRITTEN(file, (error as Error).message).from(error);
  }
}
