import { readFile, writeFile } from "node:fs/promises";
import { planUpgrade } from "../../../procedures/plans/upgrade/upgrade.ts";
import { type UpgradeMethod, upgradePath } from "../../../procedures/plans/upgrade/upgrade-path.ts";
import { servingNodes } from "../../../procedures/serving-nodes.ts";
import { gatherUpgrade } from "../../../procedures/upgrade/gather-upgrade.ts";
import { errors } from "../../errors.ts";
import type { Session } from "../../session.ts";
import { toolConnection } from "../../tool-connection.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { runProcedure } from "../runs/run-procedure.ts";
import { refuseWavesTwice, type TrafficFlags, type WaveFlags, wavesInputs } from "../switch/switch.flags.ts";

interface UpgradeFlags extends ProcedureFlags, WaveFlags, TrafficFlags {
  force?: true;
  to?: string;
  from?: string;
  method?: UpgradeMethod;
  manifest?: string;
  base?: string;
  take?: Record<string, "mine" | "new">;
  acceptLoss?: string[];
  saveManifest?: string;
  values?: string;
  chart?: string;
}

export async function upgrade(session: Session, flags: UpgradeFlags): Promise<void> {
  const { to, from, method, chart, take = {}, saveManifest } = flags;
  refuseWavesTwice(flags);
  const manifest = await readGiven("--manifest", flags.manifest);
  const base = await readGiven("--base", flags.base);
  const values = await readGiven("--values", flags.values);
  await runProcedure(session, flags, {
    procedure: "upgrade",
    owned: true,
    stored: true,
    makePlan: async (observation, { command, client, files, tools, signal }) => {
      const path = upgradePath(observation, {
        ...(to !== undefined && { to }),
        ...(from !== undefined && { from }),
        ...(method && { method }),
        given: {
          manifest: Boolean(manifest),
          base: Boolean(base),
          values: Boolean(values),
          chart: chart !== undefined,
        },
      });
      const given = {
        ...(manifest && { manifest }),
        ...(base && { base }),
        ...(values && { values }),
        ...(chart !== undefined && { chart }),
        take,
        connection: toolConnection(session),
      };
      const facts = await gatherUpgrade(observation, path, given, { client, files, tools, signal });
      const waves = await wavesInputs(flags, () => servingNodes(client, signal));
      const plan = planUpgrade(observation, path, facts, {
        command,
        ...(flags.force && { force: true }),
        ...(waves && { waves }),
        ...(flags.acceptLoss && { acceptLoss: flags.acceptLoss }),
        ...(flags.canaryTraffic === "auto" && { budget: flags.budget }),
      });
      if (saveManifest !== undefined && facts.merged) await save(saveManifest, facts.merged.text);
      return plan;
    },
    next: ["vendorctl version", "vendorctl status"],
  });
}

async function readGiven(flag: string, file: string | undefined): Promise<{ file: string; text: string } | undefined> {
  if (file === undefined) return undefined;
  try {
    return { file, text: await readFile(file, "utf8") };
  } catch (error) {
    throw errors.FILE_NOT_READ(flag, file, (error as NodeJS.ErrnoException).code ?? "unknown reason").from(error);
  }
}

async function save(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600 });
  } catch (error) {
    throw errors.FILE_NOT_WRITTEN(file, (error as Error).message).from(error);
  }
}
