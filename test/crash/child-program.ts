import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** A source file as a program of its own, bundled into `workDir`. */
export async function childProgram(source: URL, workDir: string): Promise<string> {
  const file = fileURLToPath(source);
  const program = join(workDir, basename(file).replace(/\.ts$/, ".mjs"));
  await build({
    entryPoints: [file],
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
