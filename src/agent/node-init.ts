import { vendorNames } from "../api/names.ts";
import type { Program } from "../cluster/program.ts";
import { realKernel } from "../kernel/kernel.ts";
import { readInitConfig } from "./config.ts";
import { errors } from "./errors.ts";

/** Mounts for the whole node what eBPF needs: before the agent, and privileged, so that the agent finds it wherever it looks. */
export const nodeInitProgram: Program = async ({ env, log }) => {
  const { cgroup, bpf } = readInitConfig(env);
  if (!cgroup) {
    log.info({}, "nothing to prepare: this node runs no eBPF");
    return;
  }
  const kernel = realKernel();
  const mounts = [
    ["bpf", bpf],
    ["cgroup2", cgroup],
  ] as const;
  for (const [type, path] of mounts) {
    try {
      const made = kernel.mounts.ensure(type, path);
      log.info({ type, path, program: vendorNames.workloads.node }, made ? "mounted" : "is mounted already");
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw errors.NODE_SETUP_FAILED(`mounting ${type} at ${path}`, why);
    }
  }
};
