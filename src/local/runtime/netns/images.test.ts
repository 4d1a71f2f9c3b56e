import { expect, it } from "vitest";
import { VERSION } from "../../../api/tables/release.ts";
import { ImageError } from "../node-runtime.ts";
import { imageRun } from "./images.ts";

const ours = `registry.vendor.io/vendor/vendor:${VERSION}`;

it.each([
  ["our own image", { image: ours, command: ["vendor", "node"] }, ["vendor", "node"]],
  ["another release of our line", { image: "vendor:v3.31.0", command: ["vendor", "node"] }, ["vendor", "node"]],
  ["pause", { image: "registry.k8s.io/pause:3.10" }, ["sleep", "infinity"]],
  ["a probe", { image: "probe" }, ["vendor", "probe", "serve"]],
  [
    "a probe with arguments",
    { image: "x/probe:1", args: ["serve", "--tcp", "80"] },
    ["vendor", "probe", "serve", "--tcp", "80"],
  ],
  ["any other, by its command", { image: "busybox", command: ["sh", "-c"], args: ["true"] }, ["sh", "-c", "true"]],
])("%s runs a process", (_, container, command) => {
  expect(imageRun({ name: "main", ...container })).toMatchObject({ is: "process", command });
});

it("a release whose own programs are here runs them, and not ours", () => {
  const container = { name: "main", image: "vendor:v3.20.0", command: ["vendor", "node"] };
  const env = { VENDOR_VERSION: "v3.20.0" };
  expect(imageRun(container, new Set(["v3.20.0"]))).toMatchObject({ env, files: "/opt/vendor/releases/v3.20.0" });
  expect(imageRun({ ...container, image: ours }, new Set(["v3.20.0"]))).toMatchObject({ files: "/opt/vendor" });
});

it("kube-proxy is imitated, the platform's name server is simulated", () => {
  expect(
    imageRun({ name: "p", image: "registry.local/kube-proxy:v1.36.4", command: ["/usr/local/bin/kube-proxy"] }),
  ).toEqual({
    is: "service-proxy",
  });
  expect(imageRun({ name: "d", image: "registry.local/coredns:v1.12.4" })).toEqual({ is: "paper" });
});

it.each([
  ["a program that is not here", { image: "a", command: ["/no/such"] }, 'no program "/no/such"'],
  ["no command at all", { image: "nginx" }, "only the command of a container can be run here"],
  ["our image of another release", { image: "vendor:v3.20.0", command: ["vendor", "node"] }, "is of release v3.20.0"],
])("%s cannot be run, and the sentence says why", (_, container, why) => {
  expect(() => imageRun({ name: "main", ...container })).toThrow(ImageError);
  expect(() => imageRun({ name: "main", ...container })).toThrow(why);
});
