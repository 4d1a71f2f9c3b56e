import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Kernel } from "../../../kernel/kernel.ts";
import { packageRoot } from "../netns/our-image.ts";
import { isInstalled, whyNotReal } from "../netns/why-not-real.ts";

const TOOLS = ["containerd", "containerd-shim-runc-v2", "ctr", "runc", "buildah"];

/** Why nodes cannot run containers on this machine; undefined when they can. */
export async function whyNoContainers(openKernel: () => Kernel): Promise<string | undefined> {
  const why = await whyNotReal(openKernel);
  if (why !== undefined) return why;
  const missing = TOOLS.find((tool) => !isInstalled(tool));
  if (missing) return `${missing} is not installed`;
  if (!existsSync(join(packageRoot(), "Containerfile"))) return "the image is built from a checkout, and this is none";
  return undefined;
}
