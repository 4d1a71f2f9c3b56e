import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

/** Debian's browser; undefined: there is none. */
export function findChromium(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.map((folder) => join(folder, "chromium")).find(existsSync);
}

export async function openBrowser(executablePath: string): Promise<Browser> {
  // Its sandbox needs a user that is not root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return await chromium.launch({ executablePath, args: [...args, "--disable-gpu", "--disable-dev-shm-usage"] });
}
