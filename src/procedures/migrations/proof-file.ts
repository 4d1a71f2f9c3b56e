import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { OwnedThroughV3 } from "../observation.ts";
import { errors } from "./errors.ts";

/** What a person keeps of the migration, whatever becomes of the cluster: each reference as it was, and what became of it. */
export interface ProofFile {
  references?: readonly OwnedThroughV3[];
  restored?: { added: number; already: number };
  /** Owners that were gone when the references were to be added again. */
  goneOwners?: readonly OwnedThroughV3[];
  lost?: readonly OwnedThroughV3[];
  proved?: number;
}

/** Adds to what the file says. A file that cannot be written stops the migration before anything was changed, and not after. */
export async function addToProofFile(file: string | undefined, more: ProofFile): Promise<void> {
  if (file === undefined) return;
  try {
    await mkdir(dirname(file), { recursive: true });
    const text = `${JSON.stringify({ ...(await readProofFile(file)), ...more }, null, 2)}\n`;
    // Whole or not at all: this may be the last copy there is.
    await writeFile(`${file}.new`, text, { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch (error) {
    throw errors.PROOF_FILE_UNWRITABLE(file, (error as Error).message).from(error);
  }
}

async function readProofFile(file: string): Promise<ProofFile> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as ProofFile;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
}
