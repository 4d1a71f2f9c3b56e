import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { ROOT } from "./fingerprint.mjs";

/**
 * There may be no container tool here, so the stages are walked by hand: what `COPY` brings into a stage is copied into a folder, and
 * the build and the executable are run there. What the base image has is not looked at.
 */
const stages = readFileSync(join(ROOT, "Containerfile"), "utf8")
  .split(/^FROM /m)
  .slice(1)
  .map((text) => ({
    text,
    copies: [...text.matchAll(/^COPY (?!--from)(.+)$/gm)].map(([, words]) => words.split(" ")),
  }));

const home = mkdtempSync(join(tmpdir(), "containerfile-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function layOut(stage, name) {
  const dir = join(home, name);
  mkdirSync(dir);
  for (const words of stage.copies) {
    const target = words.at(-1);
    for (const source of words.slice(0, -1)) {
      cpSync(join(ROOT, source), join(dir, target.endsWith("/") ? join(target, source) : target), { recursive: true });
    }
  }
  return dir;
}

describe("the image", () => {
  it("builds from what the first stage copies, and runs from what the second one does", () => {
    const build = layOut(stages[0], "build");
    symlinkSync(join(ROOT, "node_modules"), join(build, "node_modules"));
    const built = spawnSync(process.execPath, ["tools/build.mjs"], { cwd: build, encoding: "utf8" });
    expect(built.stderr).toBe("");
    expect(built.status).toBe(0);

    const image = layOut(stages[1], "image");
    cpSync(join(build, "dist"), join(image, "dist"), { recursive: true });
    symlinkSync(join(image, "bin/vendor"), join(home, "vendor"));
    const run = spawnSync(join(home, "vendor"), ["no-such-program"], { cwd: image, encoding: "utf8" });
    expect(JSON.parse(run.stdout.trim().split("\n").at(-1))).toMatchObject({ code: "PROGRAM_UNKNOWN" });
    expect(run.status).not.toBe(0);
  });

  it("is labelled with the version of the product, and sends no more to the builder than it copies", () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(stages[1].text).toContain(`ARG VERSION=v${version}\n`);
    expect(stages[1].text).toMatch(/image\.version="\$\{VERSION\}"/);
    const copied = new Set(stages.flatMap(({ copies }) => copies.flatMap((words) => words.slice(0, -1))));
    const [all, ...sent] = readFileSync(join(ROOT, ".dockerignore"), "utf8").match(/^[^#\n].*$/gm);
    expect(all).toBe("*");
    expect(sent.sort()).toEqual([...copied].map((path) => `!${path}`).sort());
  });

  it("runs as nobody, starts as vendor, and leaves the package manager behind", () => {
    expect(stages[1].text).toMatch(/^USER 10001:10001$/m);
    expect(stages[1].text).toMatch(/^ENTRYPOINT \["vendor"\]$/m);
    expect(stages[1].text).toMatch(/rm -rf .*npm/);
  });
});
