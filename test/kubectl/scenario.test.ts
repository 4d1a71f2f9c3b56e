import { describe, it } from "vitest";
import { findKubectls, missingKubectls } from "../support/kubectl.ts";
import { access } from "./access.ts";
import { applying } from "./applying.ts";
import { changing } from "./changing.ts";
import { deleting } from "./deleting.ts";
import { discovery } from "./discovery.ts";
import { fieldOwners } from "./field-owners.ts";
import { nodes } from "./nodes.ts";
import { ourResources } from "./our-resources.ts";
import { reading } from "./reading.ts";
import { rollouts } from "./rollouts.ts";
import { running } from "./running.ts";
import { runScenario } from "./scenario.ts";

/** Real clients of the public system drive the embedded cluster: whatever they cannot do here is our mistake. */
const CHAPTERS = [
  discovery,
  ourResources,
  fieldOwners,
  applying,
  changing,
  reading,
  running,
  rollouts,
  deleting,
  nodes,
  access,
];

/** The newest client in every test run; with KUBECTL_VERSIONS=all (`npm run test:long -- kubectl`) each that the machine has. */
const all = findKubectls();
const programs = process.env["KUBECTL_VERSIONS"] === "all" ? all : all.slice(-1);

describe.each(programs)("kubectl $version", (program) => {
  runScenario(program, CHAPTERS);
});

if (programs.length === 0) {
  it("kubectl drives the embedded cluster", ({ skip }) => {
    skip("this machine has no kubectl");
  });
}

for (const { version } of all.filter((one) => !programs.includes(one))) {
  it(`kubectl ${version} drives the embedded cluster`, ({ skip }) => {
    skip("a long run: npm run test:long -- kubectl");
  });
}

for (const { release, reason } of missingKubectls()) {
  it(`the kubectl of ${release} drives the embedded cluster`, ({ skip }) => {
    skip(`no kubectl of ${release}: ${reason}`);
  });
}
