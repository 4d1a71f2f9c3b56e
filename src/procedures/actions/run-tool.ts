import type { Action, Work } from "../action.ts";
import { errors } from "./errors.ts";
import { areMet, awaitExpectations, type Expectation } from "./objects/expectation.ts";

export type RunToolInputs = {
  program: string;
  args: readonly string[];
  /** Given to it on standard input. */
  input?: string;
  /** How to get the program, for who has not got it. */
  hint: string;
  /** How the cluster shows that it was done; where it does already, the tool is not run. */
  until: readonly Expectation[];
  /** The undo command; without it the cluster's state does not come from this tool alone, and other steps undo it. */
  back?: { args: readonly string[]; input?: string; until: readonly Expectation[] };
};

/** Has another program do the step. It must do nothing the second time, as every step. */
export const runTool: Action<RunToolInputs> = {
  needed: async ({ until }, work) => until.length === 0 || !(await areMet(until, work)),
  apply: (inputs, work) => run(inputs, inputs.args, inputs.input, work),
  confirm: ({ until }, work) => awaitExpectations(until, work),
  async undo(inputs, work) {
    const { back } = inputs;
    if (back === undefined) return;
    await run(inputs, back.args, back.input, work);
    await awaitExpectations(back.until, work);
  },
};

async function run(
  { program, hint }: RunToolInputs,
  args: readonly string[],
  input: string | undefined,
  { tools, say, signal }: Work,
): Promise<void> {
  const path = await tools.find(program);
  if (path === undefined) throw errors.STEP_TOOL_MISSING(program, hint);
  const command = [program, ...args].join(" ");
  say(`running ${command}`);
  const result = await tools.run(path, args, { signal, ...(input === undefined ? {} : { input }) });
  if (result.exitCode === 0) return;
  const said = (result.stderr || result.stdout).trim().split("\n").at(-1) ?? "";
  throw errors.STEP_TOOL_FAILED(command, result.exitCode, said || "no output");
}
