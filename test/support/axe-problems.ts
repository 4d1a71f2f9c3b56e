import axe from "axe-core";
import type { Page } from "playwright-core";

interface AxeViolation {
  id: string;
  nodes: { html: string }[];
}

/** What axe finds on a page, one line for each rule. */
export async function axeProblems(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return await page.evaluate(async () => {
    const { axe: tool } = globalThis as unknown as { axe: { run(): Promise<{ violations: AxeViolation[] }> } };
    const { violations } = await tool.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
  });
}
