import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { LocalCluster } from "../../src/local/cluster.ts";
import { describeKind } from "../support/kind-scenario.ts";
import { findKubectls } from "../support/kubectl.ts";
import { applyAll, documents, manifest } from "../support/operator-manifests.ts";

const MANIFEST = resolve("manifests/vendor-operator.yaml");

/** Somebody with the chart tool elsewhere, who runs there what the line tells. */
function elsewhere(line: string, { client }: LocalCluster): Promise<void> | undefined {
  return /^helm upgrade --install /.test(line)
    ? applyAll(client, documents(manifest("vendor-operator.yaml")))
    : undefined;
}

describe("by chart, without the chart tool on this machine", () => {
  const { step, ok, plan, looks } = describeKind({ kind: "aks" }, elsewhere);
  const path = process.env["PATH"];
  beforeAll(() => {
    process.env["PATH"] = "/nowhere";
  });
  afterAll(() => {
    process.env["PATH"] = path;
  });

  step("the plan says so, with the exact command", async () => {
    const { plan: made } = await plan("install", "--method", "chart");
    const operator = made.steps.find(({ id }) => id === "operator");
    expect(operator).toMatchObject({ action: "wait-outside", where: "helm, which is not on this machine" });
    expect(String(operator?.inputs["tell"])).toMatch(
      /^helm upgrade --install vendor vendor\/vendor-operator --version v3\.31\.3 --namespace vendor-operator .*--kubeconfig .+$/,
    );
  });

  step("and goes on when the operator is there", async () => {
    await ok("install", "--method", "chart", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy on 2 nodes");
  });
});

const kubectl = findKubectls().at(-1);

describe.skipIf(!kubectl)(`by chart, with the chart tool${kubectl ? "" : " (needs kubectl)"}`, () => {
  const story = describeKind({ kind: "generic" });
  const { step, ok, looks } = story;
  const path = process.env["PATH"];
  /** Stands in for the chart tool: writes down what it was told, and does what the chart would. */
  beforeAll(() => {
    const tool = story.file("helm");
    const log = story.file("helm.log");
    const lines = [
      "#!/bin/sh",
      `echo "$*" >> ${log}`,
      'while [ $# -gt 0 ]; do [ "$1" = --kubeconfig ] && config=$2; [ "$1" = uninstall ] && verb=delete; shift; done',
      `if [ "$verb" = delete ]; then exec ${kubectl?.path} --kubeconfig "$config" delete --ignore-not-found -f ${MANIFEST}; fi`,
      `exec ${kubectl?.path} --kubeconfig "$config" apply --server-side --force-conflicts -f ${MANIFEST}`,
    ];
    writeFileSync(tool, `${lines.join("\n")}\n`);
    chmodSync(tool, 0o755);
    process.env["PATH"] = `${dirname(tool)}:${path}`;
  });
  afterAll(() => {
    process.env["PATH"] = path;
  });

  step("it is run for this cluster, without the chart's custom resources", async () => {
    await ok("install", "--method", "chart", "--chart", "./charts/vendor-operator", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
    const said = readFileSync(story.file("helm.log"), "utf8");
    expect(said).toMatch(
      /^upgrade --install vendor \.\/charts\/vendor-operator --namespace vendor-operator --create-namespace --set installation\.enabled=false --set apiServer\.enabled=false --kubeconfig \S+\n$/,
    );
  });

  step("taken back, it takes the release away, when the custom resources are gone", async () => {
    await ok("rollback", "-y");
    expect(existsSync(story.file("helm.log")) && readFileSync(story.file("helm.log"), "utf8")).toMatch(
      /\nuninstall vendor /,
    );
    expect(await looks()).toBe("nothing on 0 nodes; service proxy on 2 nodes");
  });
});
