import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_KIND_NAMES } from "../../src/api/tables/cluster-kinds.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { CLUSTER, eightSteps, type TypedLine } from "../support/eight-steps.ts";
import { findKubectls } from "../support/kubectl.ts";
import { recordTranscripts } from "../support/transcripts.ts";
import { whyNoRealNodes } from "./real-cluster.ts";

const kubectl = findKubectls().at(-1);
const why =
  whyNoRealNodes ??
  (kubectl ? undefined : "needs kubectl") ??
  (process.env["EIGHT_STEPS"] === "full" ? undefined : "a long run: npm run test:long -- eight-steps");
const LINE_MS = 600_000;
const AGAIN_MS = 1_000;

/** Of kinds, what was typed and shown. Recorded into the documentation with UPDATE_GOLDEN=1. */
const transcripts = new Map<string, string[]>();
afterAll(() => {
  if (process.env["UPDATE_GOLDEN"] && transcripts.size > 0) recordTranscripts(transcripts);
});

/** The procedure of the specification, typed line by line, with real nodes and real packets. */
describe.skipIf(why !== undefined).each(CLUSTER_KIND_NAMES)(
  `the eight steps on %s${why ? ` (${why})` : ""}`,
  (kind) => {
    let cluster: LocalCluster;
    let shell: Shell;
    const written: string[] = [];

    beforeAll(async () => {
      cluster = await startCluster({ name: CLUSTER, kind, nodes: 2, runtime: "netns" });
      shell = openShell(cluster.kubeconfig);
    });
    afterAll(async () => {
      shell?.close();
      await cluster?.close();
    });

    it.each(eightSteps(kind).map((step) => [step.title, step] as const))(
      "%s",
      async (_, { title, lines: typedLines }) => {
        written.push(`### ${title}`, "", "```text");
        for (const typed of typedLines) {
          const shown = await untilShown(shell, typed);
          // Who built the kernel is nothing for a guide.
          const lines = shown.replaceAll(release(), release().split("-", 1)[0] as string).split("\n");
          written.push(`$ ${typed.line}`, ...lines.filter(Boolean));
        }
        written.push("```", "");
        transcripts.set(kind, written);
      },
    );
  },
);

async function untilShown(shell: Shell, { line, shows }: TypedLine): Promise<string> {
  const until = Date.now() + patience(120_000);
  for (;;) {
    const shown = await shell.type(line);
    if (shows.test(shown)) return shown;
    if (Date.now() > until) expect(`$ ${line}\n${shown}`).toMatch(shows);
    await new Promise((resume) => setTimeout(resume, AGAIN_MS));
  }
}

interface Shell {
  /** Everything that the line prints. */
  type(line: string): Promise<string>;
  close(): void;
}

const END = "the line ended";

/** In an empty directory with the published files, and only one kubectl in reach. */
function openShell(kubeconfig: string): Shell {
  const home = mkdtempSync(join(tmpdir(), "vendor-steps-"));
  writeFileSync(join(home, "kubeconfig"), kubeconfig, { mode: 0o600 });
  cpSync(resolve("manifests"), join(home, "manifests"), { recursive: true });
  mkdirSync(join(home, "bin"));
  symlinkSync(kubectl!.path, join(home, "bin", "kubectl"));
  const env = { HOME: home, PATH: `${join(home, "bin")}:/usr/bin:/bin`, KUBECONFIG: join(home, "kubeconfig") };
  const bash = spawn("bash", [], { cwd: home, env, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: bash.stdout })[Symbol.asyncIterator]();
  return {
    async type(line) {
      const late = setTimeout(() => bash.kill("SIGKILL"), patience(LINE_MS));
      bash.stdin.write(`exec 2>&1\n${line}\necho; echo "${END}"\n`);
      const shown: string[] = [];
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`the shell ended: ${line}\n${shown.join("\n")}`);
        if (value === END) break;
        shown.push(value);
      }
      clearTimeout(late);
      return shown.join("\n").trim();
    },
    close() {
      bash.kill("SIGKILL");
      rmSync(home, { recursive: true, force: true });
    },
  };
}
