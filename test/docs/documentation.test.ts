import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../src/api/object.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import { vendorctl } from "../support/vendorctl.ts";
import { commandProblems } from "./command-lines.ts";
import {
  anchorsOf,
  type Block,
  blocksOf,
  codeWords,
  filePaths,
  inlineCommands,
  linksOf,
  readPage,
} from "./markdown-blocks.ts";

/**
 * The documentation, tried on one cluster of simulated nodes, in the order of its index. A block of YAML is applied; with `fragment` it is only
 * parsed. A block of shell with `run` must succeed; any other names commands and flags that exist.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const INDEX = "docs/README.md";
const LANGUAGES = new Set(["sh", "yaml", "text"]);
const npmScripts = new Set(
  Object.keys((JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: object }).scripts),
);

const pages = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "ARCHITECTURE.md", INDEX, ...guidesInOrder()];
const blocks = pages.flatMap((page) => blocksOf(page, readPage(ROOT, page)));
const tried = blocks.filter(
  ({ language, flags }) => language === "yaml" || (language === "sh" && flags.includes("run")),
);
const at = ({ page, line }: { page: string; line: number }) => `${page}:${line}`;

function guidesInOrder(): string[] {
  const linked = linksOf(INDEX, readPage(ROOT, INDEX)).map(({ path }) => path);
  return [...new Set(linked.filter((path) => path.startsWith("docs/guide/")))];
}

function sourceTexts(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(?:ts|h|c)$/.test(name) && !name.endsWith(".test.ts"))
    .map((name) => readFileSync(join(folder, name), "utf8"));
}

describe("pages", () => {
  it("are all in the index", () => {
    const guides = readdirSync(join(ROOT, "docs/guide")).map((name) => `docs/guide/${name}`);
    expect(guides.filter((path) => !pages.includes(path))).toEqual([]);
  });

  it("link to files and headings that exist", () => {
    const broken = pages
      .flatMap((page) => linksOf(page, readPage(ROOT, page)))
      .filter(({ path, anchor }) => {
        if (!existsSync(join(ROOT, path))) return true;
        return anchor !== undefined && !anchorsOf(readPage(ROOT, path)).has(anchor);
      });
    expect(broken.map((link) => `${at(link)}: ${link.path}#${link.anchor ?? ""}`)).toEqual([]);
  });

  it("name files that exist", () => {
    const missing = pages.flatMap((page) =>
      filePaths(readPage(ROOT, page))
        .filter(({ path }) => !existsSync(join(ROOT, path)))
        .map(({ line, path }) => `${page}:${line}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it("name codes, reasons and variables that exist", () => {
    const sources = ["src", "bpf"].flatMap((folder) => sourceTexts(join(ROOT, folder)));
    const known = new Set(sources.flatMap((text) => text.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? []));
    const unknown = pages.flatMap((page) =>
      codeWords(readPage(ROOT, page))
        .filter(({ word }) => !known.has(word))
        .map(({ line, word }) => `${page}:${line}: ${word}`),
    );
    expect(unknown).toEqual([]);
  });

  it("say of each block what it is", () => {
    const unknown = blocks.filter(({ language }) => !LANGUAGES.has(language));
    expect(unknown.map((block) => `${at(block)}: "${block.language}"`)).toEqual([]);
  });

  it("name commands and flags that exist", () => {
    const inBlocks = blocks
      .filter(({ language }) => language === "sh")
      .flatMap((block) => commandProblems(block.text, npmScripts).map((problem) => `${at(block)}: ${problem}`));
    const inProse = pages.flatMap((page) =>
      inlineCommands(readPage(ROOT, page)).flatMap(({ line, text }) =>
        commandProblems(text, npmScripts).map((problem) => `${page}:${line}: ${problem}`),
      ),
    );
    expect([...inBlocks, ...inProse]).toEqual([]);
  });

  it("would be found out if they did not", () => {
    for (const wrong of [
      "vendorctl chekc",
      "vendorctl check --prae",
      "kubectl vendor status --wach",
      "kubectl -n x exec p -- vendor node shwo pods",
      "kubectl gett pods",
      "npm run nothing",
      "X=$(vendorctl cluster kubeconfg)",
      "vendorctl plan switch --too BPF",
    ]) {
      expect(commandProblems(wrong, npmScripts), wrong).toHaveLength(1);
    }
  });
});

describe("examples on a cluster", () => {
  const tool = vendorctl();
  let client: Client;
  let env: NodeJS.ProcessEnv;
  let hasKubectl = false;

  beforeAll(async () => {
    const up = await tool.run("cluster", "up", "--name", "docs", "--paper", "--nodes", "2", "--detach");
    expect(up, up.err).toMatchObject({ status: 0 });
    const kubeconfig = (await tool.run("cluster", "kubeconfig", "--name", "docs")).out.trim();
    const installed = await tool.run("install", "-y", "--kubeconfig", kubeconfig);
    expect(installed, installed.err).toMatchObject({ status: 0 });
    client = createClient(httpsTransport(loadConnection({ kubeconfig })), { userAgent: "docs" });
    const bin = mkdtempSync(join(tmpdir(), "docs-bin-"));
    writeFileSync(join(bin, "vendorctl"), `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/bin/vendorctl" "$@"\n`, {
      mode: 0o755,
    });
    env = { PATH: `${bin}:${process.env["PATH"]}`, HOME: tool.home, VENDORCTL_HOME: tool.home, KUBECONFIG: kubeconfig };
    hasKubectl = (await shell("command -v kubectl")).status === 0;
  });

  afterAll(async () => {
    client?.close();
    await tool.clear();
    if (env) rmSync((env["PATH"] as string).split(":", 1)[0] as string, { recursive: true, force: true });
  });

  function shell(script: string): Promise<{ status: number; output: string }> {
    return new Promise((done) => {
      execFile("bash", ["-euo", "pipefail", "-c", script], { cwd: tool.home, env }, (error, out, err) =>
        done({ status: error ? 1 : 0, output: `${out}${err}` }),
      );
    });
  }

  async function apply(block: Block): Promise<void> {
    for (const document of parseAllDocuments(block.text)) {
      if (document.errors.length > 0) throw document.errors[0] as Error;
      const object = document.toJS() as KubeObject | null;
      if (object === null) throw new Error("an empty document");
      if (!block.flags.includes("fragment")) {
        await client.apply(await client.resourceFor(object), object, {
          fieldManager: "docs",
          force: true,
          fieldValidation: "Strict",
        });
      }
    }
  }

  it.for(tried.map((block) => [at(block), block] as const))("%s", async ([, block], context) => {
    if (block.language === "yaml") return await apply(block);
    if (/\bkubectl\b/.test(block.text) && !hasKubectl) return context.skip("needs kubectl");
    const { status, output } = await shell(block.text);
    expect(status, output).toBe(0);
  });
});
