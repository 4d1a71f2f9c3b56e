import { expect, it } from "vitest";
import { imageFor } from "./image.ts";

it.each([
  [{}, "registry.vendor.io/vendor/vendor:v3.31.3"],
  [{ registry: "mirror.example.test/" }, "mirror.example.test/vendor/vendor:v3.31.3"],
  [{ registry: "mirror.example.test:5000", imagePath: "/a/b/" }, "mirror.example.test:5000/a/b/vendor:v3.31.3"],
  [{ imagePath: "", imagePrefix: "my-" }, "registry.vendor.io/my-vendor:v3.31.3"],
])("the image of %j is %s", (source, image) => expect(imageFor(source, "v3.31.3")).toBe(image));
