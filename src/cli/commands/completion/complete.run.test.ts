import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { vendorctl } from "../../testing/fake-context.ts";

async function completed(...words: string[]): Promise<string[]> {
  const { exit, out, err } = await vendorctl(["complete", "--", ...words]);
  expect({ exit, err }).toEqual({ exit: 0, err: "" });
  return out.split("\n").filter(Boolean);
}

it.each<[line: string, found: string[]]>([
  ["cluster k", ["kubeconfig"]],
  ["cluster up --na", ["--name", "--namespace", "--names"]],
  ["switch --to ", ["bpf", "standard"]],
  ["switch --to s", ["standard"]],
  ["switch --to=s", ["--to=standard"]],
  ["switch --to = s", ["standard"]],
  ["plan switch --to b", ["bpf"]],
  ["plan sw", ["switch"]],
  ["diff proxy ", ["status", "disable", "restore", "enable"]],
  ["install --dataplane ", ["bpf", "standard"]],
  ["check --for ", ["install", "switch", "upgrade"]],
  ["check --kind a", ["aks"]],
  ["check --suppress API_ADDRESS_UNR", ["API_ADDRESS_UNRESOLVED", "API_ADDRESS_UNREACHABLE"]],
  ["cluster up --runtime s", ["simulated"]],
  ["cluster down --name ", ["demo"]],
  ["-o j", ["json", "junit", "jsonpath=", "jsonpath-file="]],
  ["--names ", ["vendor", "calico"]],
  ["completion ", ["bash", "zsh", "fish"]],
  ["explain KUBECONFIG_MIS", ["KUBECONFIG_MISSING"]],
  ["get globalnetworkp", ["globalnetworkpolicies"]],
  ["delete ippo", ["ippools"]],
])("vendorctl %s", async (line, found) => {
  expect(await completed(...line.split(" "))).toEqual(found);
});

it("completes the contexts of the kubeconfig that is named", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "vendorctl-")), "kubeconfig");
  writeFileSync(file, JSON.stringify({ contexts: [{ name: "prod" }, { name: "staging" }] }));
  expect(await completed("--kubeconfig", file, "check", "--context", "")).toEqual(["prod", "staging"]);
});

it("offers nothing, and says nothing, where names cannot be had", async () => {
  expect(await completed("--kubeconfig", "/nowhere/kubeconfig", "history", "")).toEqual([]);
  expect(await completed("--kubeconfig", "/nowhere/kubeconfig", "get", "tiers", "")).toEqual([]);
});

it("has a script for each shell", async () => {
  expect((await vendorctl(["completion", "bash"])).out).toContain("complete -o default -F _vendorctl vendorctl");
  expect((await vendorctl(["completion", "zsh"])).out).toContain("compdef _vendorctl vendorctl");
  expect((await vendorctl(["completion", "fish"])).out).toContain("complete -c vendorctl");
});
