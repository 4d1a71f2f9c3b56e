import { expect, it } from "vitest";
import { VERSION } from "../../../api/tables/release.ts";
import { ImageError } from "../node-runtime.ts";
import { containerImage } from "./container-images.ts";

const BUILT = {
  layout: "/images/x",
  base: "a base",
  ours: { reference: `registry.vendor.io/vendor/vendor:${VERSION}`, digest: "sha256:aa", user: "10001:10001" },
  pause: { reference: "localhost/vendor-pause:1", digest: "sha256:bb", user: "65535:65535" },
};
const { ours, pause } = BUILT;

it.each([
  [
    "our image",
    { image: ours.reference, command: ["vendor", "node"] },
    { ...ours, command: ["vendor", "node"], args: [] },
  ],
  [
    "our image of a mirror",
    { image: `mirror:5000/x/vendor:${VERSION}@sha256:aa`, args: ["operator"] },
    { ...ours, command: [], args: ["operator"] },
  ],
  ["pause", { image: "registry.k8s.io/pause:3.10" }, { ...pause, command: [], args: [] }],
  ["a probe", { image: "probe" }, { ...ours, command: ["vendor", "probe"], args: ["serve"] }],
  ["a probe with a command", { image: "probe", command: ["sh"] }, { ...ours, command: ["sh"], args: [] }],
])("%s is a container", (_, container, wanted) => {
  expect(containerImage({ name: "main", ...container }, BUILT)).toEqual({ is: "container", ...wanted });
});

it("what is of the platform is done by the cluster", () => {
  expect(containerImage({ name: "p", image: "registry.local/kube-proxy:v1" }, BUILT)).toEqual({ is: "service-proxy" });
  expect(containerImage({ name: "d", image: "registry.local/coredns:v1" }, BUILT)).toEqual({ is: "paper" });
});

it.each([
  ["another image", "nginx:1", "have no registry"],
  ["another release", "vendor:v3.20.0", `is of ${VERSION}, not of v3.20.0`],
  ["another digest", `vendor:${VERSION}@sha256:cc`, "has the digest sha256:aa, not sha256:cc"],
  ["pause with a command", "pause", "have no registry"],
])("%s cannot be pulled, and the sentence says why", (_, image, why) => {
  const container = { name: "main", image, ...(image === "pause" && { command: ["sh"] }) };
  expect(() => containerImage(container, BUILT)).toThrow(ImageError);
  expect(() => containerImage(container, BUILT)).toThrow(why);
});
