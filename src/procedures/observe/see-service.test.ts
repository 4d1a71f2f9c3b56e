import { expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Workload } from "../../api/workload-objects.ts";
import { versionOf } from "./see-service.ts";

const agents = (image: string) =>
  ({ spec: { template: { spec: { containers: [{ image }] } } } }) as unknown as Workload;
const information = (vendorVersion: string) => ({ spec: { vendorVersion } }) as unknown as KubeObject;

it.each([
  ["agents of the release that is written", "v3.31.3", "vendor:v3.31.3", "v3.31.3"],
  ["an older manifest over a newer release", "v3.31.3", "node:v3.27.5", "v3.27.5"],
  ["an upgrade that has not reached the agents' pods", "v3.27.5", "vendor:v3.31.3", "v3.27.5"],
  ["tags of a registry of one's own", "v3.31.3", "vendor:1.4", "v3.31.3"],
  ["an image by digest", "v3.31.3", `vendor@sha256:${"0".repeat(64)}`, "v3.31.3"],
])("the version with %s", (_, written, image, version) => {
  const found = { clusterInformation: information(written), installation: undefined, operator: undefined };
  expect(versionOf({ ...found, nodeAgents: agents(`registry.example/${image}`) }, vendorNames).version).toBe(version);
});
