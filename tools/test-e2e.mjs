// npm run test:e2e -- --kubeconfig FILE: the life cycle of the service on a cluster of yours, with the published files, vendorctl and kubectl.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { Problem, runAsScript, runInTerminal } from "./say.mjs";
import { setup } from "./setup.mjs";

const METHODS = ["vendorctl", "kubectl", "chart"];

const OPTIONS = {
  kubeconfig: { type: "string" },
  context: { type: "string" },
  image: { type: "string" },
  "api-server": { type: "string" },
  "reboot-command": { type: "string" },
  method: { type: "string", multiple: true },
  keep: { type: "boolean" },
};

const USAGE =
  "npm run test:e2e -- --kubeconfig FILE [--context NAME] [--method vendorctl|kubectl|chart]... [--api-server HOST:PORT] " +
  "[--image IMAGE] [--reboot-command COMMAND] [--keep]";

async function main(args) {
  const settings = settingsOf(args);
  for (const program of programsOf(settings)) {
    if (!onPath(program)) {
      throw new Problem(`there is no ${program} on the path`, `install ${program}, or choose another --method`);
    }
  }
  setup();
  await build();
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const flags = ["run", "--config", join(ROOT, "test/e2e/vitest.config.ts")];
  return runInTerminal(process.execPath, [vitest, ...flags], {
    env: { ...process.env, E2E_SETTINGS: JSON.stringify(settings) },
  });
}

/** What the flags say; the test changes a whole cluster, so it never takes the kubeconfig that happens to be the default one. */
function settingsOf(args) {
  const values = valuesOf(args);
  if (values.kubeconfig === undefined)
    throw new Problem("no kubeconfig is given", `the test installs and uninstalls the service: ${USAGE}`);
  const kubeconfig = resolve(values.kubeconfig);
  if (!existsSync(kubeconfig)) throw new Problem(`there is no file ${kubeconfig}`, USAGE);
  const methods = values.method ?? METHODS.filter((method) => method !== "chart" || onPath("helm"));
  const strange = methods.find((method) => !METHODS.includes(method));
  if (strange) throw new Problem(`there is no method ${strange}`, `choose from ${METHODS.join(", ")}`);
  return {
    kubeconfig,
    context: values.context,
    image: values.image,
    apiServer: values["api-server"],
    rebootCommand: values["reboot-command"],
    methods,
    keep: values.keep ?? false,
  };
}

function valuesOf(args) {
  try {
    return parseArgs({ args, options: OPTIONS }).values;
  } catch (error) {
    throw new Problem(error.message, USAGE);
  }
}

function programsOf({ methods }) {
  return methods.includes("chart") ? ["kubectl", "helm"] : ["kubectl"];
}

function onPath(program) {
  return (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, program)));
}

await runAsScript(import.meta.url, main);
