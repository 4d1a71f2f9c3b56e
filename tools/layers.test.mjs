import { describe, expect, it } from "vitest";
import { importsOf, layerProblems } from "./layers.mjs";

const problems = (path, source) => layerProblems(new Map([[path, source]]));

describe("who may import whom", () => {
  it("lets a room use itself, the rooms below it and packages", () => {
    const source = `
      import { a } from "./other.ts";
      import type { B } from "../../api/object.ts";
      import "../../kit/errors.ts";
      import { join } from "node:path";
      const lazy = () => import("../../cluster/client.ts");
    `;
    expect(problems("src/operator/render/node.ts", source)).toEqual([]);
  });

  it.each([
    ["a room above", "src/kit/ip.ts", `import { KubeObject } from "../api/object.ts";`, "kit must not import api"],
    [
      "a type from a room above",
      "src/api/x.ts",
      `import type { T } from "../cluster/transport.ts";`,
      "api must not import cluster",
    ],
    ["a neighbour", "src/cluster/x.ts", `export { y } from "../apiserver/y.ts";`, "cluster must not import apiserver"],
    ["a room above, lazily", "src/local/x.ts", `await import("../cli/printer.ts");`, "local must not import cli"],
    ["a room nobody drew", "src/helpers/x.ts", `import "../kit/x.ts";`, "helpers is not in the table"],
    ["a tool", "src/cli/x.ts", `import "../../tools/build.mjs";`, "outside src"],
    ["a test", "src/cli/x.ts", `import { it } from "./y.test.ts";`, "only for tests"],
    ["a fake", "src/kernel/kernel.ts", `import { f } from "./fake/fake-kernel.ts";`, "only for tests"],
    ["a fake beside it", "src/apiserver/storage/store.ts", `import { d } from "./fake-disk.ts";`, "only for tests"],
    ["test support", "src/cluster/x.ts", `import { z } from "./testing/z.ts";`, "only for tests"],
    [
      "the foreign-function library",
      "src/agent/x.ts",
      `import koffi from "koffi";`,
      "only src/kernel/sys.ts may import koffi",
    ],
  ])("refuses %s", (_what, path, source, sentence) => {
    expect(problems(path, source)).toEqual([expect.stringContaining(sentence)]);
  });

  it("lets the flow UI share the grammar and shapes on the wire, and nothing else", () => {
    const shared = `
      import { parseQuery } from "../../src/flows/query/parse-query.ts";
      import type { FlowKey } from "../../src/api/protocol/flow.ts";
      import { render } from "preact";
    `;
    expect(problems("ui/flows/x.tsx", shared)).toEqual([]);
    for (const [path, source, sentence] of [
      ["ui/flows/x.tsx", `import "../../src/kit/http-front.ts";`, "not for browsers"],
      ["ui/worker/x.ts", `import { signal } from "@preact/signals";`, "a worker has no document"],
      ["ui/worker/x.ts", `import { go } from "../page-state.ts";`, "a worker has no document"],
      ["src/flows/x.ts", `import "../../ui/keys.ts";`, "outside src"],
    ])
      expect(problems(path, source), path).toEqual([expect.stringContaining(sentence)]);
  });

  it("lets the one file that speaks to libc import the foreign-function library", () => {
    expect(problems("src/kernel/sys.ts", `import koffi from "koffi";`)).toEqual([]);
  });

  it("lets a test meet the neighbour it is tested against, but not the rooms above", () => {
    expect(problems("src/cluster/x.test.ts", `import { server } from "../apiserver/server.ts";`)).toEqual([]);
    expect(problems("src/cluster/x.test.ts", `import "../../test/support/kubectl.ts";`)).toEqual([]);
    expect(problems("src/cluster/x.test.ts", `import "../local/up.ts";`)).toHaveLength(1);
  });

  it("does not take comments for imports, nor strings for comments", () => {
    expect(problems("src/kit/x.ts", `// import "../api/x.ts"\n/* from "../api/y.ts" */`)).toEqual([]);
    expect(problems("src/kit/x.ts", `const glob = "/*"; import "../api/x.ts"; const end = "*/";`)).toHaveLength(1);
  });

  it("sees every spelling of an import", () => {
    const source = `import a, { b } from "./1"; export * from './2';\nimport "./3";import("./4");\nimport type {\n  C,\n} from "./5";`;
    expect(importsOf(source)).toEqual(["./1", "./2", "./3", "./4", "./5"]);
  });
});

describe("rooms that stay synchronous", () => {
  it.each([
    "src/calc/order.ts",
    "src/operator/render/node.ts",
    "src/procedures/plans/switch/switch.ts",
    "src/local/seed/plan-pods.ts",
    "src/local/controllers/workloads/job-plan.ts",
  ])("refuses await in %s", (path) => {
    expect(problems(path, "export const f = async () => 1;")).toEqual([expect.stringContaining("says async")]);
    expect(problems(path, "// we never await here\nexport const text = 'await';")).toEqual([]);
  });

  it("leaves the other rooms free to wait", () => {
    expect(problems("src/local/controllers/workloads/job.ts", "export const f = async () => 1;")).toEqual([]);
  });
});

describe("what depends on the kind of cluster", () => {
  it.each([
    [`if (kind === "aks") go();`],
    [`const leads = kindOf(seen) !== "openshift";`],
    [`switch (kind) { case "mke": return 1; }`],
    [`const WITHOUT = new Set(["openshift", "mke"]);`],
    [`if ("eks" === kind) go();`],
  ])("is no comparison: %s", (source) => {
    expect(problems("src/procedures/plans/x.ts", source)).toEqual([expect.stringContaining("kind of cluster")]);
  });

  it("is a column, or a word that is only passed on", () => {
    expect(problems("src/procedures/plans/x.ts", `if (CLUSTER_KINDS[kind].ebpfByDefault) use("generic");`)).toEqual([]);
  });

  it("may be compared in a test", () => {
    expect(problems("src/procedures/plans/x.test.ts", `if (kind === "aks") go();`)).toEqual([]);
  });
});
