import { vendorNames } from "../../src/api/names.ts";
import type { Client } from "../../src/cluster/client.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { Work } from "../../src/procedures/action.ts";
import { ACTIONS } from "../../src/procedures/actions/all.ts";
import type { Step } from "../../src/procedures/plan.ts";

/** Steps one after the other without a journal, for stories about what the steps do. Gives back what they said. */
export async function runSteps(client: Client, steps: readonly Step[], options: Partial<Work> = {}): Promise<string[]> {
  const said: string[] = [];
  const work: Work = {
    client,
    names: vendorNames,
    clock: systemClock,
    signal: new AbortController().signal,
    say: (text) => said.push(text),
    waitingFor: (what) => said.push(`waiting for ${what}`),
    measured: (text) => said.push(text),
    keep: async () => {},
    files: { from: "nowhere", read: (name) => Promise.reject(new Error(`no file ${name}`)) },
    tools: { find: async () => undefined, run: () => Promise.reject(new Error("no tools")) },
    ...options,
  };
  for (const { action: name, inputs } of steps) {
    const action = ACTIONS[name];
    if (!action) throw new Error(`no action ${name}`);
    if (!(await action.needed(inputs, work))) continue;
    const before = await action.before?.(inputs, work);
    await action.apply(inputs, work, before);
    await action.confirm?.(inputs, work, before);
  }
  return said;
}
