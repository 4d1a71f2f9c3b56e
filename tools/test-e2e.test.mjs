import { expect, it } from "vitest";
import { run } from "./say.mjs";

const testE2e = (...args) => run(process.execPath, ["tools/test-e2e.mjs", ...args]);

it.each([
  ["no kubeconfig, so that it never takes the default one", [], "no kubeconfig is given"],
  ["a kubeconfig that is not there", ["--kubeconfig", "nowhere.conf"], "there is no file"],
  ["a method that does not exist", ["--kubeconfig", "package.json", "--method", "magic"], "there is no method magic"],
  ["a flag that does not exist", ["--cluster", "x"], "Unknown option"],
])("refuses %s", (_, args, sentence) => {
  const { status, text } = testE2e(...args);
  expect(status).toBe(1);
  expect(text).toContain(`error: ${sentence}`);
  expect(text).toContain("fix: ");
});
