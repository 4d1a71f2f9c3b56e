import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** A file of this folder as a program of its own, bundled into `workDir`. */
export async function childProgram(file: string, workDir: string): Promise<string> {
  const program = join(workDir, file.replace(/\.ts$/, ".mjs"));
  await build({
    entryPoints: [fileURLToPath(new URL(file, import.meta.url))],
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
    // CommonJS packages ask for Node's own modules by require(), which an ES module does not have.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
  });
  return program;
}
