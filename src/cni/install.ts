import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Program } from "../cluster/program.ts";
import { sleep, systemClock } from "../kit/clock.ts";
import { type InstallConfig, readInstallConfig } from "./config.ts";
import { errors } from "./errors.ts";

const PLUGIN = "vendor";
/** Runtimes call it for every pod in addition to what the conflist names, and start none on a node that does not have it. */
const LOOPBACK = "loopback";
/** The interpreter of the plugin, in the same directory: hidden, so that it is not taken for a plugin. */
const INTERPRETER_DIR = ".vendor";

/** How often a program that stays looks whether another program removed or changed what it installed. */
const LOOK_AGAIN_MS = 10_000;

/**
 * Puts the plugin, what runs it and, last, its configuration on the node: a runtime that sees the configuration finds all of it. Each file
 * appears whole or not at all, and one that is as it should be is left alone.
 */
export const cniInstallProgram: Program = async ({ env, log, signal, clock = systemClock }) => {
  const config = readInstallConfig(env);
  const sources = { interpreter: process.execPath, bundle: pluginBundle() };
  const written = installCni(config, sources);
  log.info({ written }, written.length > 0 ? "installed the plugin" : "the plugin is installed already");
  while (config.stays && !signal.aborted) {
    await sleep(clock, LOOK_AGAIN_MS, signal);
    const again = signal.aborted ? [] : installCni(config, sources);
    if (again.length > 0)
      log.warn({ written: again }, "another program removed or changed the plugin: installed it again");
  }
};

export interface InstallSources {
  /** The program that runs the bundle. */
  interpreter: string;
  /** The bundled plugin. */
  bundle: string;
}

/** What it wrote, by path. */
export function installCni(config: Omit<InstallConfig, "stays">, { interpreter, bundle }: InstallSources): string[] {
  const conflist = conflistOf(config);
  const runner = join(config.binDir, INTERPRETER_DIR, "node");
  const plugin = `#!${join(config.binHostDir, INTERPRETER_DIR, "node")}\n${readFileSync(bundle, "utf8")}`;
  return [
    ...copyIfOther(interpreter, runner),
    ...writeIfOther(join(config.binDir, PLUGIN), plugin, 0o755),
    ...(hasOthersLoopback(config) ? [] : writeIfOther(join(config.binDir, LOOPBACK), plugin, 0o755)),
    ...writeIfOther(join(config.confDir, config.confName), conflist, 0o644),
  ];
}

/** Every file of ours on a node; other plugins and their configurations are not ours. */
export function cniFiles({
  binDir,
  confDir,
  confName,
}: Pick<InstallConfig, "binDir" | "confDir" | "confName">): string[] {
  const loopback = hasOthersLoopback({ binDir }) ? [] : [join(binDir, LOOPBACK)];
  return [join(confDir, confName), join(binDir, PLUGIN), ...loopback, join(binDir, INTERPRETER_DIR)];
}

/** Ours names our interpreter in its first line. */
function hasOthersLoopback({ binDir }: Pick<InstallConfig, "binDir">): boolean {
  const path = join(binDir, LOOPBACK);
  if (!existsSync(path)) return false;
  const [firstLine = ""] = readFileSync(path, "latin1").split("\n", 1);
  return !(firstLine.startsWith("#!") && firstLine.endsWith(`/${INTERPRETER_DIR}/node`));
}

/** In the reverse order, so that no runtime calls what is no longer there. */
export function uninstallCni(config: Pick<InstallConfig, "binDir" | "confDir" | "confName">): string[] {
  return cniFiles(config).filter((path) => {
    const there = existsSync(path);
    rmSync(path, { recursive: true, force: true });
    return there;
  });
}

/** The bundle is a separate file next to the one this runs from. */
function pluginBundle(): string {
  return join(dirname(fileURLToPath(import.meta.url)), "cni-plugin.cjs");
}

function conflistOf({ networkConfig, socket }: Pick<InstallConfig, "networkConfig" | "socket">): string {
  let list: { name?: unknown; plugins?: unknown };
  try {
    list = JSON.parse(networkConfig) as typeof list;
  } catch (error) {
    throw errors.CNI_INSTALL_CONFIG(error instanceof Error ? error.message : String(error));
  }
  if (typeof list?.name !== "string" || !Array.isArray(list.plugins))
    throw errors.CNI_INSTALL_CONFIG("no name or plugins");
  if (socket === undefined) return networkConfig;
  const plugins = (list.plugins as { type?: string }[]).map((one) => (one.type === PLUGIN ? { ...one, socket } : one));
  return `${JSON.stringify({ ...list, plugins }, undefined, 2)}\n`;
}

function writeIfOther(path: string, text: string, mode: number): string[] {
  if (existsSync(path) && readFileSync(path, "utf8") === text && (statSync(path).mode & 0o777) === mode) return [];
  return putting(path, (fresh) => {
    writeFileSync(fresh, text, { mode });
    // The umask of the process must not decide who may run the plugin.
    chmodSync(fresh, mode);
  });
}

/** It is large, so on one file system it is not copied; a copy is recognised by its size and age. */
function copyIfOther(from: string, path: string): string[] {
  if (existsSync(path)) {
    const [there, here] = [statSync(path), statSync(from)];
    if (there.ino === here.ino || (there.size === here.size && there.mtimeMs >= here.mtimeMs)) return [];
  }
  return putting(path, (fresh) => {
    try {
      linkSync(from, fresh);
    } catch {
      copyFileSync(from, fresh, constants.COPYFILE_FICLONE);
    }
  });
}

function putting(path: string, write: (fresh: string) => void): string[] {
  const fresh = `${path}.${process.pid}.new`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    rmSync(fresh, { force: true });
    write(fresh);
    renameSync(fresh, path);
    return [path];
  } catch (error) {
    rmSync(fresh, { force: true });
    throw errors.CNI_INSTALL_FAILED(path, error instanceof Error ? error.message : String(error));
  }
}
