import type { InstallationSpec } from "../../api/resources/installation.ts";

const DEFAULT_REGISTRY = "registry.vendor.io";
const DEFAULT_PATH = "vendor";
/** There is one image; which program it runs is the container's command. */
const NAME = "vendor";

export type ImageSource = Pick<InstallationSpec, "registry" | "imagePath" | "imagePrefix">;

/** The image of every container: `registry/path/prefix+vendor:version`. An empty path means none. */
export function imageFor(source: ImageSource, version: string): string {
  const registry = (source.registry ?? DEFAULT_REGISTRY).replace(/\/+$/, "");
  const path = (source.imagePath ?? DEFAULT_PATH).replace(/^\/+|\/+$/g, "");
  const name = `${source.imagePrefix ?? ""}${NAME}:${version}`;
  return [registry, path, name].filter((part) => part !== "").join("/");
}
