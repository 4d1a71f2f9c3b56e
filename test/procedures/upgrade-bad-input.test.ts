import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorctl } from "../../src/cli/testing/fake-context.ts";
import { type ClusterState, clusterState, settledState, stateDifferences } from "../support/procedure-state.ts";
import { type UpgradeScenario, upgradeScenario } from "../support/upgrade-scenario.ts";

/** The command line is read before anything is asked of a cluster, so none is needed here. */
it.each<[line: string, code: string, sentence: string]>([
  ["upgrade --to latest", "BAD_VALUE", '--to cannot be "latest"'],
  ["upgrade --from old", "BAD_VALUE", '--from cannot be "old"'],
  ["upgrade --method snap", "BAD_VALUE", '--method cannot be "snap"'],
  ["upgrade --take spec.replicas", "BAD_VALUE", '--take cannot be "spec.replicas"'],
  ["upgrade --take Deployment/x:spec=theirs", "BAD_VALUE", '--take cannot be "Deployment/x:spec=theirs"'],
  ["upgrade --manifest= ", "BAD_VALUE", '--manifest cannot be ""'],
  ["upgrade --base= ", "BAD_VALUE", '--base cannot be ""'],
  ["upgrade --values= ", "BAD_VALUE", '--values cannot be ""'],
  ["upgrade --chart= ", "BAD_VALUE", '--chart cannot be ""'],
  ["upgrade --save-manifest= ", "BAD_VALUE", '--save-manifest cannot be ""'],
  ["upgrade --manifest-url= ", "BAD_VALUE", '--manifest-url cannot be ""'],
  [
    "upgrade --manifest /nowhere/mine.yaml",
    "FILE_NOT_READ",
    "--manifest: /nowhere/mine.yaml could not be read: ENOENT",
  ],
  ["upgrade --base /nowhere/base.yaml", "FILE_NOT_READ", "--base: /nowhere/base.yaml could not be read: ENOENT"],
  ["upgrade --values /", "FILE_NOT_READ", "--values: / could not be read: EISDIR"],
  ["upgrade --dry-run=maybe", "BAD_VALUE", '--dry-run cannot be "maybe"'],
  ["upgrade --wait=soon", "BAD_VALUE", '--wait cannot be "soon"'],
  ["upgrade now", "USAGE", "too many arguments for 'upgrade'"],
  ["upgrade --wave-size 0", "BAD_VALUE", '--wave-size cannot be "0"'],
  ["flows enable --page", "UNKNOWN_FLAG", "unknown option '--page'"],
  ["flows enable everything", "USAGE", "too many arguments for 'enable'"],
  ["flows disable --ui", "UNKNOWN_FLAG", "unknown option '--ui'"],
])("vendorctl %s", async (line, code, sentence) => {
  const { exit, out, err } = await vendorctl(line.split(" ").filter((word) => word !== ""));
  expect({ exit, out }).toEqual({ exit: 64, out: "" });
  expect(err).toContain(sentence);
  expect(err).toContain(`[${code}]`);
});

describe("on a cluster with v3.27 from plain manifests", () => {
  let story: UpgradeScenario;
  let before: ClusterState;
  const files: Record<string, string> = {
    BROKEN: "a: [",
    LIST: "- 1\n",
    NAMELESS: "apiVersion: v1\nkind: Secret\n",
    TWICE:
      "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
  };
  beforeAll(async () => {
    story = await upgradeScenario("v3.27", "manifest");
    before = await settledState(story.cluster.client);
  });
  afterAll(() => story.close());

  it.each<[line: string, exit: number, code: string, sentence: RegExp]>([
    ["upgrade --to v3.30.0", 3, "UPGRADE_TARGET_UNKNOWN", /upgrades to v3\.31, not to v3\.30\.0/],
    ["upgrade --to v3.31.9", 3, "UPGRADE_TARGET_UNKNOWN", /has the files of v3\.31\.3/],
    ["upgrade --from v3.14", 3, "UPGRADE_FROM_TOO_OLD", /v3\.14 is older than v3\.15/],
    ["upgrade --from v3.32", 3, "UPGRADE_BACKWARDS", /does not go back/],
    ["upgrade --method operator", 3, "UPGRADE_OTHER_METHOD", /installed by manifest/],
    ["upgrade --method chart", 3, "UPGRADE_OTHER_METHOD", /installed by manifest/],
    ["upgrade --values BROKEN", 64, "UPGRADE_FLAG_OF_OTHER_METHOD", /--values has no effect/],
    ["upgrade --chart ./chart", 64, "UPGRADE_FLAG_OF_OTHER_METHOD", /--chart has no effect/],
    ["upgrade --manifest BROKEN", 64, "MERGE_FILE_UNREADABLE", /BROKEN.* is not YAML/],
    ["upgrade --manifest LIST", 64, "MERGE_FILE_NOT_OBJECTS", /is not an object/],
    ["upgrade --manifest NAMELESS", 64, "MERGE_FILE_NOT_OBJECTS", /is not an object/],
    ["upgrade --manifest TWICE", 64, "MERGE_FILE_TWICE", /has Secret\/a twice/],
    ["upgrade --base BROKEN", 64, "MERGE_FILE_UNREADABLE", /is not YAML/],
    ["upgrade --take Deployment/x:spec=mine", 64, "UPGRADE_TAKE_UNKNOWN", /--take names Deployment\/x:spec/],
    ["upgrade", 3, "UPGRADE_WOULD_LOSE", /lost +IPPool\.spec\.ipipMode.*--accept-loss IPPool\.spec\.ipipMode/s],
    ["upgrade --accept-loss ipip", 64, "UPGRADE_LOSS_UNKNOWN", /--accept-loss names ipip/],
    ["upgrade --save-manifest /nowhere/new.yaml", 1, "FILE_NOT_WRITTEN", /could not be written/],
    [
      "upgrade --manifest-url nonsense",
      64,
      "MANIFEST_URL_UNUSABLE",
      /"nonsense" is not an http, https or file address/,
    ],
    ["upgrade --manifest-url file:///nowhere", 1, "MANIFEST_NOT_FOUND", /vendor\.yaml is not at/],
    ["upgrade --manifest-url http://127.0.0.1:1/", 64, "MANIFEST_NOT_PINNED", /need https and a pinned digest/],
    [
      "upgrade --insecure --manifest-url http://127.0.0.1:1/",
      69,
      "MANIFEST_NOT_SERVED",
      /could not be read: ECONNREFUSED/,
    ],
    ["flows enable", 3, "FLOW_RESOURCES_TOO_EARLY", /v3\.30/],
    ["flows disable", 3, "FLOW_RESOURCES_TOO_EARLY", /v3\.30/],
  ])("vendorctl %s is refused, and nothing has changed", async (line, exit, code, sentence) => {
    const words = line.split(" ").map((word) => (files[word] === undefined ? word : story.file(word, files[word])));
    const ran = await story.run(...words, "-y");
    expect({ exit: ran.exit, err: ran.err }).toEqual({ exit, err: expect.stringMatching(sentence) });
    expect(ran.err).toContain(`[${code}]`);
    expect(stateDifferences(before, await clusterState(story.cluster.client))).toEqual([]);
  });

  it("without a terminal and without -y it asks nobody, and changes nothing", async () => {
    const { exit, err } = await story.run("upgrade", "--accept-loss", "IPPool.spec.ipipMode");
    expect({ exit, err }).toEqual({ exit: 64, err: expect.stringContaining("[CONFIRMATION_NEEDED]") });
    expect(stateDifferences(before, await clusterState(story.cluster.client))).toEqual([]);
  });
});
